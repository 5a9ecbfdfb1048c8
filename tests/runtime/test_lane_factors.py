"""TFLITE_DOUBLE and EXACT in the forms for many channels at once: the same integers as their definitions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.kernels.matmul_parameters import DOUBLE_BY_FLOAT64, DOUBLE_BY_FLOAT64_POSITIVE, EXACT, TFLITE_DOUBLE
from runtime.lowering.lane_factors import sums_factors
from runtime.lowering.requantization import Requantization
from schema import Node, Quantization, Tensor, fixedpoint
from schema.ops.attributes import Conv2DAttributes, FullyConnectedAttributes
from tests.support.engine import compare

FORMS = (DOUBLE_BY_FLOAT64, DOUBLE_BY_FLOAT64_POSITIVE)


def epilogue(scaling, largest):
    """Of one channel whose accumulators are `largest` at most, without bias."""
    return sums_factors(scaling, np.zeros(1, np.int64), np.array([largest]), 2, 1)


def by_float64(found, acc, low, high):
    """What runtime.kernels.requantize_lanes computes of the first channel, the float64 product in integers."""
    factors = found.factors[: 4 * 64]
    multiplier = int(factors[:8].view(np.float64)[0] * 2**31)
    addend, right = (int(factors[at : at + 4].view(np.int32)[0]) for at in (128, 192))
    product = acc.astype(np.int64) * multiplier
    whole = (product + (1 << 30)) >> 31
    whole -= ((product & (2**31 - 1)) == 1 << 30) & (whole & 1)  # ties to even
    if found.rule == DOUBLE_BY_FLOAT64:
        addend = addend + (whole >> 31)
    return np.clip((whole + addend) >> right, low, high)


multipliers = st.one_of(
    st.floats(2.0**-20, 0.49),
    st.builds(lambda odd, zeros: odd * 2.0**-zeros, st.integers(1, 2**15 - 1), st.integers(16, 30)),  # many ties
)


@given(multipliers, st.integers(-128, 127), st.booleans(), st.integers(0, 2**24))
def test_thresholds_and_ties_are_where_they_are_by_definition(multiplier, zero_point, positive, start):
    low, high = zero_point if positive else -128, 127
    scaling = Requantization(TFLITE_DOUBLE, 0, zero_point, np.array([multiplier]), low, high)
    found = epilogue(scaling, 2**24)
    if found is None or found.rule not in FORMS:
        return
    assert (found.rule == DOUBLE_BY_FLOAT64_POSITIVE) == (low >= zero_point)
    # Around all 511 thresholds that any zero point has, and somewhere.
    near = np.rint((np.arange(-255, 256) - 0.5) / multiplier)[:, np.newaxis] + np.arange(-3, 4)
    acc = np.concatenate([near.reshape(-1), np.arange(start, start + 500), -np.arange(start, start + 500)])
    acc = np.clip(acc, -(2**24), 2**24).astype(np.int64)
    expected = fixedpoint.requantize(acc, multiplier, zero_point, low, high, rule="TFLITE_DOUBLE")
    np.testing.assert_array_equal(by_float64(found, acc, low, high), expected)


@pytest.mark.parametrize("positive", [False, True])
def test_every_accumulator_of_a_range(positive, rng):
    acc = np.arange(-70_000, 70_001)
    used = 0
    for multiplier in [*rng.uniform(0.001, 0.02, 20), *(k * 2.0**-14 for k in (17, 33, 63, 129, 255))]:
        low = 3 if positive else -128
        found = epilogue(Requantization(TFLITE_DOUBLE, 0, 3, np.array([multiplier]), low, 127), 70_000)
        if found.rule in FORMS:
            expected = fixedpoint.requantize(acc, multiplier, 3, low, 127, rule="TFLITE_DOUBLE")
            np.testing.assert_array_equal(by_float64(found, acc, low, 127), expected)
            used += 1
    assert used >= 20


def test_where_ties_would_differ_the_other_form_is_taken():
    scaling = Requantization(TFLITE_DOUBLE, 0, 0, np.array([0.375]), -128, 127)
    found = epilogue(scaling, 1000)
    acc = np.arange(-1000, 1001)
    product = acc * (3 << 29)  # 0.375 is 0.75 * 2^-1
    whole = np.rint(product / 2**31).astype(np.int64)
    wrong = np.clip((whole + 1 + (whole >> 31)) >> 1, -128, 127)
    assert (wrong != fixedpoint.requantize(acc, 0.375, 0, -128, 127, rule="TFLITE_DOUBLE")).any()
    assert found.rule == TFLITE_DOUBLE


@given(multipliers, st.integers(-128, 127), st.booleans())
def test_exact_thresholds_and_ties_are_where_they_are_by_definition(multiplier, zero_point, positive):
    low, high = zero_point if positive else -128, 127
    found = epilogue(Requantization(EXACT, 0, zero_point, np.array([multiplier]), low, high), 2**24)
    assert found.rule == EXACT
    factor = Fraction(float(found.factors[:8].view(np.float64)[0]))
    near = np.rint((np.arange(-255, 256) - 0.5) / multiplier)[:, np.newaxis] + np.arange(-2, 3)
    acc = np.unique(np.clip(near, -(2**24), 2**24)).astype(np.int64)
    rounded = np.array([round(int(a) * factor) for a in acc])  # to the nearest, of two the even one
    expected = fixedpoint.requantize(acc, multiplier, zero_point, low, high, exact=True)
    np.testing.assert_array_equal(np.clip(rounded + zero_point, low, high), expected)


def test_where_a_product_is_next_to_a_tie_there_is_no_exact_form():
    """7 * 0.5 / 7 is a tie once rounded or just below: with the multiplier below 0.5 / 7 it must not become one."""
    below = np.nextafter(0.5 / 7, 0)
    assert 7 * below < 0.5
    for multiplier, there in ((0.5 / 7, True), (below, False)):
        scaling = Requantization(EXACT, 0, 0, np.array([multiplier]), -128, 127)
        assert (epilogue(scaling, 1000) is not None) == there


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
@pytest.mark.parametrize("zero_point", [-128, -5, 100])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("op", ["CONV_2D", "FULLY_CONNECTED"])
def test_the_engine_over_every_accumulator_of_a_range(op, activation, zero_point, ties, rng):
    """Rows are all pairs of int8, so that 127 a + b + bias is nearly every number of a range around the bias."""
    a, b = np.meshgrid(np.arange(-128, 128, dtype=np.int8), np.arange(-127, 0, dtype=np.int8))
    x = np.stack([a, b], axis=-1)[np.newaxis]
    out = 33
    scales = rng.uniform(0.005, 0.02, out).astype(np.float32)
    if ties:
        scales[:8] = np.arange(1, 16, 2) / np.float32(512)
    weights = np.broadcast_to(np.array([127, 1], np.int8), (out, 1, 1, 2)).copy()
    weights[1::2] *= -1
    if op == "FULLY_CONNECTED":
        weights = weights.reshape(out, 2)
    bias = rng.integers(-9000, 9000, out).astype(np.int32)
    input_ = Tensor("x", np.int8, x.shape, Quantization(np.float32(1), 0))
    constants = [
        Tensor.from_array("w", weights, Quantization(scales, np.zeros(out, np.int64), 0)),
        Tensor.from_array("b", bias, Quantization(scales, np.zeros(out, np.int64), 0)),
    ]
    y = Tensor("y", np.int8, (*x.shape[:-1], out), Quantization(np.float32(1), zero_point))
    attributes = (Conv2DAttributes if op == "CONV_2D" else FullyConnectedAttributes)(activation=activation)
    node = Node(op, [input_, *constants], [y], attributes)
    (result,) = compare([node], [input_], [y], [x])
    assert np.unique(result).size > 100 or activation == "RELU6" or zero_point == 100
