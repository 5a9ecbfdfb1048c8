"""int16 activations, as TFLite's 16x8 specification has them, against LiteRT's reference kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops import attributes as a
from tests.support import drawing_int8, drawing_int16, inventory, litert
from tests.support.drawing import generators, index_operand, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

WINDOWS = st.builds(
    lambda stride, padding, activation, dilation: a.Conv2DAttributes(
        stride, 1, 1, dilation, padding, activation=activation
    ),
    st.integers(1, 2),
    st.sampled_from(["SAME", "VALID"]),
    drawing_int8.activations,
    st.integers(1, 2),
)


def operand(draw, rng, *shape, low=1e-6, high=1e1) -> Operand:
    return Operand(drawing_int16.int16(rng, *shape), draw(drawing_int16.quantizations(low, high)))


def result_of(draw, x: Operand, kernel: Operand, depth: int) -> Quantization:
    """Scales from those that saturate to those that give few numbers. TFLite wants multipliers below 2^7."""
    scale = float(x.quantization.scale[0] * kernel.quantization.scale.max())
    return drawing_int16.output(draw, max(scale * 1e5 * np.sqrt(depth), scale * 16384 / 100))


NEAR = (0.0, 0.0, 0.0009, -0.0009, 0.0011, -0.0011)
BIASES = st.sampled_from([np.int64, np.int32])


@given(st.data())
def test_convolution(data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, 2, 6, 5, 3)
    kernel = drawing_int8.weights(draw, rng, (4, 3, 2, 3), 0, spread=1e3)
    bias = drawing_int16.bias(rng, x, kernel, 4, draw(BIASES))
    assert_parity("CONV_2D", draw(WINDOWS), [x, kernel, bias], result_of(draw, x, kernel, 18))


@given(st.data())
def test_depthwise_convolution(data):
    draw, rng, multiplier = data.draw, data.draw(generators), data.draw(st.integers(1, 2))
    x = operand(draw, rng, 1, 6, 5, 3)
    kernel = drawing_int8.weights(draw, rng, (1, 3, 2, 3 * multiplier), 3, spread=1e3)
    attributes = draw(WINDOWS.filter(lambda w: w.stride_h == 1))  # TFLite wants equal strides
    bias = drawing_int16.bias(rng, x, kernel, 3 * multiplier)
    assert_parity("DEPTHWISE_CONV_2D", attributes, [x, kernel, bias], result_of(draw, x, kernel, 6))


@given(st.data())
def test_transposed_convolution(data):
    draw, rng, stride = data.draw, data.draw(generators), data.draw(st.integers(1, 2))
    x = operand(draw, rng, 1, 4, 3, 2)
    kernel = drawing_int8.weights(draw, rng, (3, 3, 3, 2), 0, spread=1e3)
    shape = Operand(np.array([1, 4 * stride, 3 * stride, 3], np.int32), None, True)
    inputs = [shape, kernel, x, drawing_int16.bias(rng, x, kernel, 3, draw(BIASES))]
    attributes = a.Conv2DAttributes(stride, stride, padding="SAME")
    assert_parity("TRANSPOSE_CONV", attributes, inputs, result_of(draw, x, kernel, 8))


@given(st.data())
def test_fully_connected(data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, 3, 7)
    kernel = drawing_int8.weights(draw, rng, (4, 7), 0, spread=1e3)
    bias = drawing_int16.bias(rng, x, kernel, 4, draw(BIASES)) if draw(st.booleans()) else None
    attributes = a.FullyConnectedAttributes(activation=draw(drawing_int8.activations))
    output = result_of(draw, x, kernel, 7)
    total = x.value.astype(np.float64) @ kernel.value.T + (0 if bias is None else bias.value)
    steps = total * (x.quantization.scale * kernel.quantization.scale.astype(np.float64) / output.scale)
    # LiteRT rounds in float64; what then is no int32 becomes what the processor makes of it.
    inside = np.abs(steps) < 2**31 - 1
    assert_parity("FULLY_CONNECTED", attributes, [x, kernel, bias], output, within=inside)


@pytest.mark.parametrize("sign", [1, -1])
def test_outputs_beyond_int32_saturate(sign):
    x, kernel = (
        Operand(np.ones((1, 1), np.int16), Quantization(1.0)),
        Operand(np.ones((1, 1), np.int8), Quantization(1.0), True),
    )
    bias = Operand(np.array([sign << 30], np.int64), Quantization(1.0), True)
    y = run_reference("FULLY_CONNECTED", a.FullyConnectedAttributes(), [x, kernel, bias], [Quantization(0.01)])[0]
    assert y.item() == (32767 if sign > 0 else -32768)


@pytest.mark.parametrize("dtype", [None, np.int32, np.int64])
def test_sums_beyond_int32(dtype):
    """They wrap around beside an int32 bias only."""
    x = Operand(np.full((1, 1000), 32767, np.int16), Quantization(0.1))
    kernel = Operand(np.full((1, 1000), 127, np.int8), Quantization(0.1), True)
    bias = None if dtype is None else Operand(np.array([5], dtype), Quantization(0.01), True)
    y = assert_parity("FULLY_CONNECTED", a.FullyConnectedAttributes(), [x, kernel, bias], Quantization(2e4))
    assert (y.item() < 0) == (dtype is np.int32)


@given(st.data())
def test_batch_matmul(data):
    draw, rng = data.draw, data.draw(generators)
    x, y = operand(draw, rng, 2, 3, 5, low=1e-4), operand(draw, rng, 2, 5, 4, low=1e-4)
    typical = float(x.quantization.scale[0] * y.quantization.scale[0]) * 5e8
    assert_parity("BATCH_MATMUL", a.BatchMatMulAttributes(), [x, y], drawing_int16.output(draw, typical))


@pytest.mark.parametrize("op", ["ADD", "SUB"])
@given(data=st.data())
def test_sum(op, data):
    draw, rng = data.draw, data.draw(generators)
    x, y = operand(draw, rng, 2, 1, 5), operand(draw, rng, 3, 5)
    # Never a power of two: of those LiteRT's kernel cannot broadcast.
    typical = float(max(x.quantization.scale[0], y.quantization.scale[0])) * 16384 * 1.1
    attributes = a.ArithmeticAttributes(draw(drawing_int8.activations))
    assert_parity(op, attributes, [x, y], drawing_int16.output(draw, typical))


@pytest.mark.parametrize("op", ["ADD", "SUB"])
@given(data=st.data())
def test_sum_of_scales_that_are_powers_of_two(op, data):
    draw, rng = data.draw, data.draw(generators)
    exponent, shift, swapped = draw(st.integers(-15, -5)), draw(st.integers(0, 4)), draw(st.booleans())
    given_scales = [2.0**exponent, 2.0 ** (exponent - shift)]
    x, y = (
        Operand(drawing_int16.int16(rng, 3, 5), Quantization(s))
        for s in (given_scales[::-1] if swapped else given_scales)
    )
    attributes = a.ArithmeticAttributes(draw(drawing_int8.activations))
    assert_parity(op, attributes, [x, y], Quantization(2.0**exponent))


@given(st.data())
def test_product(data):
    draw, rng = data.draw, data.draw(generators)
    x, y = operand(draw, rng, 2, 1, 5, low=1e-4), operand(draw, rng, 3, 5, low=1e-4)
    typical = float(x.quantization.scale[0] * y.quantization.scale[0]) * 2e8
    attributes = a.ArithmeticAttributes(draw(drawing_int8.activations))
    assert_parity("MUL", attributes, [x, y], drawing_int16.output(draw, typical))


@given(st.data())
def test_quotient(data):
    draw, rng = data.draw, data.draw(generators)
    x, y = operand(draw, rng, 2, 1, 5), operand(draw, rng, 3, 5)
    y = Operand(np.where(y.value == 0, np.int16(1), y.value), y.quantization)
    output = Quantization(float(x.quantization.scale[0] / y.quantization.scale[0]) * 10 ** draw(st.floats(-4, 1)))
    inside = drawing_int8.quotients_that_litert_defines(x, y, output)
    assert_parity("DIV", a.ArithmeticAttributes(draw(drawing_int8.activations)), [x, y], output, within=inside)


@pytest.mark.parametrize("op", ["MAXIMUM", "MINIMUM"])
@given(data=st.data())
def test_extremum(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, 2, 3, 5)
    assert_parity(op, None, [x, Operand(drawing_int16.int16(rng, 5), x.quantization)], x.quantization)


@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@given(data=st.data())
def test_pooling(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, 2, 6, 5, 3)
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    attributes = a.Pool2DAttributes(
        3, 2, draw(st.integers(1, 2)), 1, padding, activation=draw(drawing_int8.activations)
    )
    assert_parity(op, attributes, [x], x.quantization)


@pytest.mark.parametrize("op", ["MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
@given(data=st.data())
def test_reduction(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, *draw(shapes(2, 4)))
    axes = draw(st.lists(st.integers(0, x.value.ndim - 1), min_size=1, max_size=2, unique=True))
    typical = float(x.quantization.scale[0]) * 16384
    result = x.quantization if op.startswith("REDUCE_M") else drawing_int16.output(draw, typical)
    assert_parity(op, a.ReduceAttributes(draw(st.booleans())), [x, index_operand(draw, axes, constant=True)], result)


@pytest.mark.parametrize("op", ["RELU", "RELU6", "LEAKY_RELU", "ABS"])
@given(data=st.data())
def test_rectifiers(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(drawing_int16.spread(rng), draw(drawing_int16.quantizations()))
    attributes = a.AlphaAttributes(draw(st.floats(-2, 2, width=32))) if op == "LEAKY_RELU" else None
    assert_parity(op, attributes, [x], drawing_int16.output(draw, float(x.quantization.scale[0]) * 16384))


@given(st.data())
def test_neg(data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(drawing_int16.spread(rng), draw(drawing_int16.quantizations()))
    assert_parity("NEG", None, [x], x.quantization)
    with pytest.raises(ShapeError, match="requantize"):
        run_reference("NEG", None, [x], [Quantization(float(x.quantization.scale[0]) * 2)])


@given(st.data())
def test_prelu(data):
    draw, rng = data.draw, data.draw(generators)
    x, slopes = operand(draw, rng, 2, 3, 5), draw(drawing_int8.quantizations(1e-4, 1e-1))
    inputs = [x, Operand(drawing_int8.int8(rng, 5), slopes, True)]
    assert_parity("PRELU", None, inputs, drawing_int16.output(draw, float(x.quantization.scale[0]) * 16384))


@pytest.mark.parametrize("op", ["SQRT", "RSQRT"])
@given(data=st.data())
def test_roots(op, data):
    draw, rng = data.draw, data.draw(generators)
    numbers = drawing_int16.spread(rng)
    x = Operand(numbers[numbers >= 0], draw(drawing_int16.quantizations(1e-6, 1e1)))
    largest = np.sqrt(float(x.quantization.scale[0]) * 16384)
    assert_parity(op, None, [x], drawing_int16.output(draw, largest if op == "SQRT" else 10 / largest))


@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"])
@given(data=st.data())
def test_comparisons(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, 2, 3, 40, high=0.9)  # LiteRT's EQUAL ends the process where a scale is 1 or more
    equal, other = rng.random((2, 3, 40)) < 0.3, drawing_int16.int16(rng, 2, 3, 40)
    y = Operand(np.where(equal, x.value, other), x.quantization)
    assert_parity(op, None, [x, y])
    other = Operand(y.value, Quantization(float(x.quantization.scale[0]) / 2))
    if op in ("EQUAL", "NOT_EQUAL"):
        assert_parity(op, None, [x, other])
    else:
        with pytest.raises(ShapeError, match="one scale"):
            run_reference(op, None, [x, other])


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
@given(data=st.data())
def test_sigmoids(op, data):
    draw, rng = data.draw, data.draw(generators)
    # LiteRT takes what is within 0.07 % of a power of two for one.
    powers = st.builds(lambda e, d: Quantization(2.0 ** (e + d)), st.integers(-18, -4), st.sampled_from(NEAR))
    x = Operand(drawing_int16.spread(rng), draw(powers | drawing_int16.quantizations(1e-6, 1e0)))
    assert_parity(op, None, [x], drawing_int16.OF_UNIT_RANGE)
    with pytest.raises(ShapeError, match="int16 of scale"):
        run_reference(op, None, [x], [Quantization(1 / 256)])


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_a_scale_that_is_nearly_a_power_of_two(op, rng):
    x = Operand(drawing_int16.spread(rng), Quantization(0.00024420421686954796))
    y = assert_parity(op, None, [x], drawing_int16.OF_UNIT_RANGE)
    exact = run_reference(op, None, [Operand(x.value, Quantization(2.0**-12))], [drawing_int16.OF_UNIT_RANGE])[0]
    np.testing.assert_array_equal(y, exact)


@given(st.data())
def test_gelu(data):
    """Within a step beside entries of the table that are ties to the last bits of the C library's erfcf and tanhf."""
    draw, rng = data.draw, data.draw(generators)
    x = Operand(drawing_int16.spread(rng), draw(drawing_int16.quantizations(1e-6, 1e-2)))
    output = drawing_int16.output(draw, float(x.quantization.scale[0]) * 16384)
    attributes = a.GeluAttributes(draw(st.booleans()))
    ours = run_reference("GELU", attributes, [x], [output])[0].astype(np.int64)
    theirs = litert.run("GELU", attributes, [x], [TensorType(None, np.int16, output)])[0]
    assert np.abs(ours - theirs).max() <= 1
    assert np.count_nonzero(ours != theirs) < 0.02 * ours.size
    inventory.record(inventory.LITERT, "GELU", [x.type], [TensorType(None, np.int16, output)])


@pytest.mark.parametrize("op", ["EXP", "LOG"])
@given(data=st.data())
def test_tables(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(drawing_int16.spread(rng), draw(drawing_int16.quantizations(1e-5, 2e-3)))  # exp in float32 ends at 88
    if op == "LOG":
        x = Operand(x.value[x.value >= 0], x.quantization)
    assert_parity(op, None, [x], draw(drawing_int16.quantizations(1e-5, 1e-2)))


@given(st.data())
def test_softmax(data):
    draw, rng = data.draw, data.draw(generators)
    x = operand(draw, rng, *draw(shapes(1, 3, high=40)), low=1e-6, high=1e-1)
    attributes = a.SoftmaxAttributes(draw(st.sampled_from([0.5, 1.0, 2.0])))
    assert_parity("SOFTMAX", attributes, [x], drawing_int16.OF_UNIT_RANGE)


@pytest.mark.parametrize("source", [np.int8, np.int16])
@pytest.mark.parametrize("target", [np.int8, np.int16])
@given(data=st.data())
def test_requantize(source, target, data):
    draw, rng = data.draw, data.draw(generators)
    if source == np.int16:
        x = operand(draw, rng, 3, 50)
    else:
        x = Operand(drawing_int8.int8(rng, 3, 50), draw(drawing_int8.quantizations(1e-5, 1e1)))
    typical = float(x.quantization.scale[0]) * np.iinfo(source).max
    scale = typical / np.iinfo(target).max * 10 ** draw(st.floats(-2, 2))
    result = Quantization(scale, draw(drawing_int8.zero_points) if target == np.int8 else 0)
    assert_parity("QUANTIZE", a.DTypeAttributes(np.dtype(target)), [x], result)


@given(st.data())
def test_to_and_from_floats(data):
    rng, q = data.draw(generators), data.draw(drawing_int16.quantizations())
    real = (rng.normal(0, 20000, (3, 50)) * q.scale[0]).astype(np.float32)
    assert_parity("QUANTIZE", a.DTypeAttributes(np.dtype(np.int16)), [Operand(real)], q)
    assert_parity("DEQUANTIZE", None, [Operand(drawing_int16.int16(rng, 3, 50), q)])


def test_zero_points_other_than_0_are_refused(rng):
    x = Operand(drawing_int16.int16(rng, 3), Quantization(0.1, 5))
    with pytest.raises(ShapeError, match="zero point 0, not 5"):
        run_reference("ADD", a.ArithmeticAttributes(), [x, x], [Quantization(0.1)])


@pytest.mark.parametrize("op", ["ELU", "HARD_SWISH", "LOG_SOFTMAX", "SQUARE", "RELU_N1_TO_1"])
def test_what_the_specification_has_not_is_refused(op, rng):
    x, kind = Operand(drawing_int16.int16(rng, 2, 3), Quantization(0.1)), ops.get(op)
    with pytest.raises(UnsupportedError, match="int16"):
        run_reference(op, kind.Attributes and kind.Attributes(), [x], [Quantization(0.1)])
