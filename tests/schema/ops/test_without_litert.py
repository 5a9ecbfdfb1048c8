"""Ops, and int8 of ops, that LiteRT has no kernel for: against their formulas in float64."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization
from schema.ops import attributes as a
from schema.ops.attributes import ClampAttributes, Pool3DAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import generators, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_agrees, run_reference

_erf = np.vectorize(math.erf, otypes=[np.float64])

FUNCTIONS = {
    "EXPM1": np.expm1,
    "LOG1P": np.log1p,
    "RECIPROCAL": np.reciprocal,
    "ERF": _erf,
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "SOFTPLUS": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    "SWISH": lambda x: x / (1 + np.exp(-x)),
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
}
INT8_ONLY = {
    "SQUARE": np.square,
    "NEG": np.negative,
    "SIGN": np.sign,
    "SIN": np.sin,
    "COS": np.cos,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": np.rint,
}
"""Ops whose float32 LiteRT has; it refuses their int8, but for NEG, whose scales it ignores."""
INSIDE = {"LOG1P": lambda x: x > -0.99, "RECIPROCAL": lambda x: np.abs(x) > 1e-6}


def inside(op: str, x: np.ndarray) -> np.ndarray:
    """Where the function is defined, and not too steep for float32."""
    return INSIDE[op](x) if op in INSIDE else np.ones(x.shape, bool)


@pytest.mark.parametrize("op", FUNCTIONS)
@given(data=st.data())
def test_float(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = (rng.normal(size=draw(shapes(1, 3, high=40))) * 10 ** draw(st.floats(-2, 1))).astype(np.float32)
    x = np.where(inside(op, x), x, np.float32(1))
    assert_agrees(op, None, [Operand(x)], FUNCTIONS[op](x.astype(np.float64)), tolerance=2e-6)


@pytest.mark.parametrize("op", [*FUNCTIONS, *INT8_ONLY])
@given(data=st.data())
def test_int8(op, data):
    """Every number, at any scale that float32 can tell its multiples apart at: the nearest step of the output."""
    draw, q = data.draw, data.draw(draws.quantizations(1e-4, 1e-1))
    function = (FUNCTIONS | INT8_ONLY)[op]
    real = (draws.EVERY_NUMBER.astype(np.int64) - q.zero_point).astype(np.float32) * q.scale
    there = inside(op, real)
    expected = function(np.where(there, real, np.float32(1)).astype(np.float64))
    output = draws.output(draw, max(float(np.median(np.abs(expected))), 1e-3) / 100)
    assert_agrees(op, None, [Operand(draws.EVERY_NUMBER, q)], expected, output, within=there)


@given(st.data())
def test_clamp(data):
    draw, rng = data.draw, data.draw(generators)
    low, high = sorted(draw(st.floats(-3, 3, width=32)) for _ in range(2))
    x = rng.normal(0, 3, draw(shapes(1, 3))).astype(np.float32)
    assert_agrees("CLAMP", ClampAttributes(low, high), [Operand(x)], np.clip(x, low, high))


@given(st.data())
def test_clamp_int8(data):
    """Requantized as RELU is, by two roundings; the bounds are rounded to the output first."""
    draw, q = data.draw, data.draw(draws.quantizations(1e-3, 1e-1))
    low, high = sorted(draw(st.floats(-3, 3, width=32)) for _ in range(2))
    output = Quantization(q.scale * 10 ** draw(st.floats(-1, 1)), draw(draws.zero_points))
    real = (draws.EVERY_NUMBER.astype(np.float64) - q.zero_point) * q.scale
    bounds = [np.rint(bound / float(output.scale[0])) * float(output.scale[0]) for bound in (low, high)]
    tie = np.zeros(256, bool)
    for bound in (low, high):
        tie |= abs(abs(bound / float(output.scale[0])) % 1 - 0.5) < 1e-3
    inputs = [Operand(draws.EVERY_NUMBER, q)]
    assert_agrees("CLAMP", ClampAttributes(low, high), inputs, np.clip(real, *bounds), output, steps=1, within=~tie)


def pooled(x: np.ndarray, window: list[int], stride: list[int], padding: str, reduce) -> np.ndarray:
    """Window by window, of the elements that are there."""
    sizes = x.shape[1:4]
    if padding == "SAME":
        counts = [-(-n // s) for n, s in zip(sizes, stride, strict=True)]
    else:
        counts = [(n - k) // s + 1 for n, k, s in zip(sizes, window, stride, strict=True)]
    before = [max((c - 1) * s + k - n, 0) // 2 for c, s, k, n in zip(counts, stride, window, sizes, strict=True)]
    y = np.zeros((len(x), *counts, x.shape[4]))
    for place in np.ndindex(*counts):
        first = [p * s - b for p, s, b in zip(place, stride, before, strict=True)]
        seen = (slice(max(f, 0), f + k) for f, k in zip(first, window, strict=True))
        y[(slice(None), *place)] = reduce(x[(slice(None), *seen)].astype(np.float64), axis=(1, 2, 3))
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16])
@pytest.mark.parametrize("op", ["AVERAGE_POOL_3D", "MAX_POOL_3D"])
@given(data=st.data())
def test_pooling_of_volumes(op, dtype, data):
    draw, rng = data.draw, data.draw(generators)
    window, stride = ([draw(st.integers(1, 3)) for _ in range(3)] for _ in range(2))
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    shape = (draw(st.integers(1, 2)), *(draw(st.integers(3, 6)) for _ in range(3)), draw(st.integers(1, 4)))
    reduce = np.mean if op.startswith("AVERAGE") else np.max
    attributes = Pool3DAttributes(*window, *stride, padding)
    if dtype == np.float32:
        x = rng.normal(size=shape).astype(np.float32)
        assert_agrees(op, attributes, [Operand(x)], pooled(x, window, stride, padding, reduce))
    else:
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape, dtype)
        q = draw(draws.quantizations())
        q = Quantization(q.scale, 0) if dtype == np.int16 else q
        real = (pooled(x, window, stride, padding, reduce) - q.zero_point) * q.scale
        assert_agrees(op, attributes, [Operand(x, q)], real, q)


def test_bounds_that_int8_cannot_hold():
    x, output = [Operand(draws.EVERY_NUMBER, Quantization(0.1))], Quantization(0.1, -128)
    assert set(run_reference("CLAMP", ClampAttributes(-2.0, -1.0), x, [output])[0].tolist()) == {-128}


BINARY = {"POW": np.power, "FLOOR_DIV": lambda a, b: np.floor(a / b), "FLOOR_MOD": np.mod}


@pytest.mark.parametrize("op", BINARY)
@given(data=st.data())
def test_int8_of_two(op, data):
    """LiteRT refuses POW, and of the others it takes the integers, whatever their scales."""
    draw, rng = data.draw, data.draw(generators)
    (x, p), (y, q) = ((draws.int8(rng, *s), draw(draws.quantizations(1e-3, 1e-1))) for s in ((3, 40), (40,)))
    real_x, real_y = (
        (v.astype(np.float64) - by.zero_point) * by.scale.astype(np.float64) for v, by in ((x, p), (y, q))
    )
    with np.errstate(all="ignore"):
        expected = BINARY[op](real_x, real_y)
    there = np.isfinite(expected)
    typical = float(np.median(np.abs(expected[there]))) if there.any() else 1.0
    output = draws.output(draw, max(typical, 1e-3) / 100)
    inputs = [Operand(x, p), Operand(y, q)]
    assert_agrees(op, None, inputs, np.where(there, expected, 0), output, within=there)


@given(st.data())
def test_cumsum_int8(data):
    """Requantized by two roundings, as SUM is."""
    draw, rng, q = data.draw, data.draw(generators), data.draw(draws.quantizations())
    x, axis, reverse = draws.int8(rng, *draw(shapes(1, 3))), draw(st.integers(-1, 0)), draw(st.booleans())
    real = (x.astype(np.float64) - q.zero_point) * q.scale.astype(np.float64)
    expected = np.flip(np.cumsum(np.flip(real, axis), axis), axis) if reverse else np.cumsum(real, axis)
    output = draws.output(draw, float(q.scale[0]))
    inputs = [Operand(x, q), Operand(np.array(axis, np.int32), None, True)]
    assert_agrees("CUMSUM", a.CumsumAttributes(False, reverse), inputs, expected, output, steps=1)


MOVEMENTS = {
    "SPACE_TO_DEPTH": a.BlockSizeAttributes(2),
    "DEPTH_TO_SPACE": a.BlockSizeAttributes(2),
    "WHERE": None,
    "ONE_HOT": a.AxisAttributes(-1),
    "SCATTER_ND": None,
}


def moved_operands(op: str, x: np.ndarray) -> list[Operand]:
    if op == "ONE_HOT":
        return [Operand(np.array([[1, 3], [4, 0]])), Operand(np.int32(4)), *(Operand(x[0, 0, 0, i]) for i in (0, 1))]
    if op == "SCATTER_ND":
        return [Operand(np.array([[2], [0]])), Operand(x[0, :2, 0]), Operand(np.array([3, 4]))]
    return [Operand(x)]


@pytest.mark.parametrize("op", MOVEMENTS)
@given(data=st.data())
def test_int16_moves_as_int32_does(op, data):
    """LiteRT moves int32, int8 and others, but not int16."""
    draw, rng = data.draw, data.draw(generators)
    shape = (draw(st.integers(1, 2)), *(2 * draw(st.integers(1, 3)) for _ in range(2)), 4)
    x, attributes = rng.integers(-300, 300, shape), MOVEMENTS[op]
    (expected,) = run_reference(op, attributes, moved_operands(op, x.astype(np.int32)))
    assert_agrees(op, attributes, moved_operands(op, x.astype(np.int16)), expected)
