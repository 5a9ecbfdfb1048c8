"""Ops of two operands that broadcast: arithmetic, comparisons, logicals, PRELU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ExecutionError, Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import ArithmeticAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import dtypes, generators, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

FUSING = ["ADD", "SUB", "MUL", "DIV"]
PLAIN = ["MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD"]
COMPARISONS = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]
LOGICALS = ["LOGICAL_AND", "LOGICAL_OR"]
NO_INT64_IN_LITERT = ("DIV", "POW", "FLOOR_DIV", "SQUARED_DIFFERENCE")


@st.composite
def broadcasting(draw, rank=4):
    """Two shapes that broadcast together. LiteRT's kernels of most ops stop at rank 4."""
    shape = draw(shapes(0, rank, high=4))
    a, b = (
        tuple(1 if draw(st.integers(0, 3)) == 0 else dim for dim in shape[draw(st.integers(0, len(shape))) :])
        for _ in range(2)
    )
    return (shape, b) if draw(st.booleans()) else (a, shape)


def attributes_of(draw, op):
    return ArithmeticAttributes(draw(draws.activations)) if op in FUSING else None


@pytest.mark.parametrize("op", FUSING + PLAIN)
@given(data=st.data())
def test_float_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (rng.normal(0, 3, shape).astype(np.float32) for shape in draw(broadcasting()))
    if op == "POW":
        a = np.abs(a)
    assert_parity(op, attributes_of(draw, op), [Operand(a), Operand(b)])


@pytest.mark.parametrize("op", FUSING + PLAIN)
@given(data=st.data())
def test_integer_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    dtype = draw(dtypes("int32", *(() if op in NO_INT64_IN_LITERT else ("int64",))))
    low, high = (0, 5) if op == "POW" else (-50, 50)
    a, b = (rng.integers(low, high, shape).astype(dtype) for shape in draw(broadcasting()))
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        b = np.where(b == 0, dtype.type(7), b)
    attributes = attributes_of(draw, op) if dtype == np.int32 else ops.get(op).Attributes and ArithmeticAttributes()
    assert_parity(op, attributes, [Operand(a), Operand(b)])


@pytest.mark.parametrize("op", FUSING)
def test_broadcasts_up_to_rank_6(op, rng):
    a = rng.normal(size=(2, 1, 3, 1, 2, 1)).astype(np.float32)
    b = rng.uniform(1, 2, size=(4, 1, 3, 1, 5)).astype(np.float32)
    y = run_reference(op, ArithmeticAttributes(), [Operand(a), Operand(b)])[0]
    compute = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}[op]
    np.testing.assert_array_equal(y, compute(a, b))
    assert y.shape == (2, 4, 3, 3, 2, 5)


@given(st.data())
def test_int8_add_broadcasts_up_to_rank_6(data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (Operand(draws.int8(rng, *s), draw(draws.quantizations(1e-3, 1e-2))) for s in draw(broadcasting(rank=6)))
    assert_parity(draw(st.sampled_from(["ADD", "MUL"])), ArithmeticAttributes(), [a, b], Quantization(0.02, 3))


@pytest.mark.parametrize("op", ["ADD", "SUB"])
@given(data=st.data())
def test_int8_sum_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (Operand(draws.int8(rng, *shape), draw(draws.quantizations())) for shape in draw(broadcasting()))
    # LiteRT ends the process where the output's scale is less than 2^-19 of the larger input's.
    output = draws.output(draw, max(a.quantization.scale[0], b.quantization.scale[0]))
    assert_parity(op, ArithmeticAttributes(draw(draws.activations)), [a, b], output)


@given(st.data())
def test_int8_product_parity(data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (Operand(draws.int8(rng, *shape), draw(draws.quantizations())) for shape in draw(broadcasting()))
    output = draws.output(draw, float(a.quantization.scale[0] * b.quantization.scale[0]) * 100)
    assert_parity("MUL", ArithmeticAttributes(draw(draws.activations)), [a, b], output)


def test_int8_divided_by_zero():
    """Undefined in TFLite; here the end of the range that has the dividend's sign, or 0."""
    a, b = Operand(np.array([5, -5, 0], np.int8), Quantization(0.1)), Operand(np.int8([3]), Quantization(0.2, 3))
    for op in ("DIV", "FLOOR_DIV", "POW"):
        attributes = ArithmeticAttributes() if op == "DIV" else None
        y = run_reference(op, attributes, [a, b], [Quantization(0.1, 7)])[0]
        assert y.tolist() == ([17, 17, 17] if op == "POW" else [127, -128, 7])


@given(st.data())
def test_int8_quotient_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shapes_of_both = draw(broadcasting())
    a, b = (Operand(draws.int8(rng, *shape), draw(draws.quantizations())) for shape in shapes_of_both)
    zero = b.value == b.quantization.zero_point  # LiteRT divides by it and gives anything
    b = Operand(np.where(zero, b.value ^ 1, b.value).astype(np.int8), b.quantization)
    output = draws.output(draw, float(a.quantization.scale[0] / b.quantization.scale[0]))
    inside = draws.quotients_that_litert_defines(a, b, output)
    assert_parity("DIV", ArithmeticAttributes(draw(draws.activations)), [a, b], output, within=inside)


@given(st.data())
def test_int8_squared_difference_parity(data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (Operand(draws.int8(rng, *s), draw(draws.quantizations(1e-3, 1e1))) for s in draw(broadcasting()))
    output = draws.output(draw, float(max(a.quantization.scale[0], b.quantization.scale[0])) ** 2 * 100)
    assert_parity("SQUARED_DIFFERENCE", None, [a, b], output)


@pytest.mark.parametrize("op", ["MAXIMUM", "MINIMUM"])
@given(data=st.data())
def test_int8_extremum_parity(op, data):
    draw, rng, q = data.draw, data.draw(generators), data.draw(draws.quantizations())
    a, b = (Operand(draws.int8(rng, *shape), q) for shape in draw(broadcasting()))
    assert_parity(op, None, [a, b], q)


@given(st.data())
def test_prelu_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(draws.int8(rng, 2, 3, 4, 5), draw(draws.quantizations()))
    shape = draw(st.sampled_from([(5,), (1, 1, 5), (3, 4, 1), (1,), (2, 3, 4, 5)]))
    alpha = Operand(draws.int8(rng, *shape), draw(draws.quantizations(1e-6, 1e0)), True)
    assert_parity("PRELU", None, [x, alpha], draws.output(draw, float(x.quantization.scale[0])))


@given(generators, st.sampled_from([(5,), (1, 1, 5), (3, 4, 1), (1,), (2, 3, 4, 5), ()]))
def test_prelu_float_parity(rng, shape):
    x, alpha = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 4, 5), shape))
    assert_parity("PRELU", None, [Operand(x), Operand(alpha, None, True)])


@pytest.mark.parametrize("op", COMPARISONS)
@given(data=st.data())
def test_comparison_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    dtype = draw(dtypes("float32", "int32", "int64", *(("bool",) if op in COMPARISONS[:2] else ())))
    a, b = (rng.integers(-2, 2, shape).astype(dtype) for shape in draw(broadcasting()))
    assert_parity(op, None, [Operand(a), Operand(b)])


@pytest.mark.parametrize("op", COMPARISONS)
@given(data=st.data())
def test_comparison_int8_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    # LiteRT ends the process where a scale is 1 or more.
    a, b = (draw(draws.quantizations(1e-5, 0.99)) for _ in range(2))
    assert_parity(op, None, [Operand(draws.int8(rng, 40, 1), a), Operand(draws.int8(rng, 40), b)])


@pytest.mark.parametrize("op", LOGICALS)
@given(data=st.data())
def test_logical_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    a, b = (rng.integers(0, 2, shape).astype(bool) for shape in draw(broadcasting()))
    assert_parity(op, None, [Operand(a), Operand(b)])


def test_fused_clamp():
    a, b = np.array([-3, 0, 3], np.float32), np.float32(1)
    attributes = ArithmeticAttributes("CLAMP", -1.5, 2.5)
    assert_close(run_reference("ADD", attributes, [Operand(a), Operand(np.asarray(b))])[0], np.array([-1.5, 1.0, 2.5]))
    with pytest.raises(ShapeError, match="clamp"):
        ops.get("ADD").check(ArithmeticAttributes("CLAMP", 2.0, 1.0))


def test_int8_clamp_is_rounded_to_the_output():
    x = Operand(draws.EVERY_NUMBER, Quantization(0.1))
    zero = Operand(np.zeros(1, np.int8), Quantization(0.1))
    y = run_reference("ADD", ArithmeticAttributes("CLAMP", -1.23, 2.58), [x, zero], [Quantization(0.1, 5)])[0]
    assert (y.min(), y.max()) == (-12 + 5, 26 + 5)


@pytest.mark.parametrize(
    ("op", "expected"), [("DIV", [-3, -3, 3]), ("FLOOR_DIV", [-4, -4, 3]), ("FLOOR_MOD", [1, -1, 1])]
)
def test_integers_divide_with_signs(op, expected):
    a, b = np.array([-7, 7, 7], np.int32), np.array([2, -2, 2], np.int32)
    attributes = ArithmeticAttributes() if op == "DIV" else None
    assert run_reference(op, attributes, [Operand(a), Operand(b)])[0].tolist() == expected
    with pytest.raises(ExecutionError, match="zero"):
        run_reference(op, attributes, [Operand(a), Operand(b * 0)])


def test_integers_have_no_negative_powers():
    with pytest.raises(ExecutionError, match="negative"):
        run_reference("POW", None, [Operand(np.array([2], np.int32)), Operand(np.array([-1], np.int32))])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((None, 3), (1, 3), (None, 3)),
        ((None, 3), (5, 1), (5, 3)),
        ((None,), (None,), (None,)),
        ((None, 1), (4,), (None, 4)),
        (None, (3,), None),
        ((2, 0), (1, 1), (2, 0)),
        ((), (2, 3), (2, 3)),
    ],
)
def test_infers_what_is_known(a, b, expected):
    types = [TensorType(a, np.float32), TensorType(b, np.float32)]
    assert ops.get("ADD").infer(ArithmeticAttributes(), types, [None, None])[0].shape == expected
    assert ops.get("LESS").infer(None, types, [None, None])[0] == TensorType(expected, np.bool_)


def test_refuses_what_does_not_fit():
    def infer(op, a, b):
        attributes = ArithmeticAttributes() if op in FUSING else None
        return ops.get(op).infer(attributes, [TensorType(*a), TensorType(*b)], [None, None])

    for a, b in [((2, 3), (2,)), ((4, None), (3, None))]:
        with pytest.raises(ShapeError, match="broadcast"):
            infer("ADD", (a, np.float32), (b, np.float32))
    with pytest.raises(ShapeError, match="cast"):
        infer("MUL", ((2,), np.float32), ((2,), np.int32))
    with pytest.raises(ShapeError, match="slopes"):
        infer("PRELU", ((1, 3), np.float32), ((2, 3), np.float32))
    for op, dtype in [
        ("ADD", np.bool_),
        ("POW", np.int16),
        ("LOGICAL_OR", np.int32),
        ("FLOOR_MOD", np.int16),
        ("LESS", np.bool_),
    ]:
        with pytest.raises(UnsupportedError, match=op):
            infer(op, ((2,), dtype), ((2,), dtype))
