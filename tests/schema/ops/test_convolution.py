"""CONV_2D and DEPTHWISE_CONV_2D."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, fixedpoint, ops
from schema.ops import convolution
from schema.ops.attributes import Conv2DAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import generators
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

FLOAT = np.dtype(np.float32)


def conv(x, weights, bias=None, **attributes):
    """CONV_2D of TensorFlow's HWIO weights."""
    inputs = [Operand(x), Operand(np.moveaxis(weights, -1, 0)), None if bias is None else Operand(bias)]
    return run_reference("CONV_2D", Conv2DAttributes(**attributes), inputs)[0]


def depthwise(x, weights, **attributes):
    """DEPTHWISE_CONV_2D of TensorFlow's HWCm weights."""
    height, width, channels, multiplier = weights.shape
    kernel = weights.reshape(1, height, width, channels * multiplier)
    return run_reference("DEPTHWISE_CONV_2D", Conv2DAttributes(**attributes), [Operand(x), Operand(kernel)])[0]


@pytest.mark.parametrize("size", [(8, 8), (9, 7), (7, 10)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [((3, 3), 1, 1), ((3, 3), 2, 1), ((2, 3), 2, 1), ((1, 1), 2, 1), ((3, 2), 1, 2), ((3, 3), 1, 3), ((5, 1), 3, 1)],
)
def test_pads_strides_and_dilates_as_tensorflow(rng, size, padding, kernel, stride, dilation):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=(2, *size, 4)).astype(np.float32)
    geometry = dict(stride_h=stride, stride_w=stride, dilation_h=dilation, dilation_w=dilation, padding=padding)
    weights = rng.normal(size=(*kernel, 4, 6)).astype(np.float32)
    bias = rng.normal(size=6).astype(np.float32)
    expected = tf.nn.conv2d(x, weights, stride, padding, dilations=dilation) + bias
    assert_close(conv(x, weights, bias, **geometry), expected, 1e-5)
    weights = rng.normal(size=(*kernel, 4, 2)).astype(np.float32)
    expected = tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], padding, dilations=[dilation] * 2)
    assert_close(depthwise(x, weights, **geometry), expected, 1e-5)


@pytest.mark.parametrize("kernel", [(3, 1), (1, 3), (1, 2)])
def test_depthwise_kernels_that_are_not_square_as_keras(rng, kernel):
    keras = pytest.importorskip("keras")
    x = rng.normal(size=(3, 8, 8, 2)).astype(np.float32)
    layer = keras.layers.DepthwiseConv2D(kernel, strides=2, padding="same", use_bias=False)
    expected = np.asarray(layer(x))
    (weights,) = layer.get_weights()
    assert_close(depthwise(x, weights, stride_h=2, stride_w=2, padding="SAME"), expected)


@pytest.mark.parametrize("groups", [2, 3, 6])
def test_groups_as_keras(rng, groups):
    keras = pytest.importorskip("keras")
    x = rng.normal(size=(2, 6, 5, 6)).astype(np.float32)
    layer = keras.layers.Conv2D(12, 3, groups=groups, padding="same", bias_initializer="normal")
    expected = np.asarray(layer(x))
    assert_close(conv(x, *layer.get_weights(), padding="SAME"), expected, 1e-5)


def test_explicit_padding_is_padding_with_zeros(rng):
    x, weights = rng.normal(size=(1, 5, 6, 3)).astype(np.float32), rng.normal(size=(3, 3, 3, 4)).astype(np.float32)
    padded = np.pad(x, [(0, 0), (1, 0), (2, 3), (0, 0)])
    assert_close(conv(x, weights, padding="EXPLICIT", pads=(1, 0, 2, 3)), conv(padded, weights))


def test_many_rows_are_unrolled_in_blocks(rng, monkeypatch):
    x, weights = rng.normal(size=(3, 9, 8, 4)).astype(np.float32), rng.normal(size=(3, 3, 4, 5)).astype(np.float32)
    whole = conv(x, weights)
    for block in (1, 3000, 2 * 42 * 36):  # a position, two positions, two samples at a time
        monkeypatch.setattr(convolution, "BLOCK", block)
        assert_close(conv(x, weights), whole)


def test_fused_clamp(rng):
    x, weights = rng.normal(size=(1, 5, 5, 3)).astype(np.float32), rng.normal(size=(3, 3, 3, 4)).astype(np.float32)
    clamped = conv(x, weights, activation="CLAMP", clamp_min=-0.5, clamp_max=1.5)
    assert_close(clamped, np.clip(conv(x, weights), -0.5, 1.5))


def test_narrow_and_wide_floats(rng):
    x, weights = rng.normal(size=(1, 5, 5, 3)), rng.normal(size=(3, 3, 3, 4))
    assert conv(x, weights).dtype == np.float64
    half = conv(x.astype(np.float16), weights.astype(np.float16))
    assert half.dtype == np.float16
    assert_close(half.astype(np.float64), conv(x, weights), 4e-3)


@st.composite
def geometries(draw, names="hw"):
    """Attributes of a window: either strides or dilations, as TFLite allows."""
    sizes = [draw(st.integers(1, 3)) for _ in names]
    kind = draw(st.sampled_from(["stride", "dilation"]))
    return Conv2DAttributes(
        **{f"{kind}_{axis}": size for axis, size in zip(names, sizes, strict=True)},
        padding=draw(st.sampled_from(["SAME", "VALID"])),
        activation=draw(draws.activations),
    )


@given(st.data())
def test_depthwise_float_parity(data):
    draw, rng = data.draw, data.draw(generators)
    depth, multiplier = draw(st.integers(1, 17)), draw(st.integers(1, 3))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    shapes = ((2, 9, 8, depth), (1, *kernel, depth * multiplier), (depth * multiplier,))
    x, weights, bias = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    window = dataclasses.replace(draw(geometries()), stride_w=1, stride_h=1)  # TFLite wants equal strides
    attributes = draw(
        st.sampled_from([window, dataclasses.replace(window, dilation_h=1, dilation_w=1, stride_h=2, stride_w=2)])
    )
    inputs = [Operand(x), Operand(weights, None, True), Operand(bias, None, True)]
    assert_parity("DEPTHWISE_CONV_2D", attributes, inputs, tolerance=2e-6)


@given(st.data())
def test_conv_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    depth, out = groups * draw(st.integers(1, 5)), groups * draw(st.integers(1, 4))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    x = Operand(draws.int8(rng, 2, 9, 8, depth), draw(draws.quantizations()))
    weights = draws.weights(draw, rng, (out, *kernel, depth // groups), 0)
    typical = float(x.quantization.scale[0]) * float(np.median(weights.quantization.scale)) * 100
    bias = draws.bias(rng, x, weights, out)
    assert_parity("CONV_2D", draw(geometries()), [x, weights, bias], draws.output(draw, typical))


@given(st.data())
def test_depthwise_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    channels, multiplier = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), channels * multiplier)
    x = Operand(draws.int8(rng, 2, 9, 8, channels), draw(draws.quantizations()))
    weights = draws.weights(draw, rng, shape, 3)
    typical = float(x.quantization.scale[0]) * float(np.median(weights.quantization.scale)) * 100
    bias = draws.bias(rng, x, weights, shape[3])
    assert_parity("DEPTHWISE_CONV_2D", draw(geometries()), [x, weights, bias], draws.output(draw, typical))


@given(st.data())
def test_conv_float_parity(data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(rng.normal(size=(2, 9, 8, 3)).astype(np.float32))
    weights = Operand(rng.normal(size=(4, draw(st.integers(1, 3)), 2, 3)).astype(np.float32), None, True)
    bias = Operand(rng.normal(size=4).astype(np.float32), None, True)
    assert_parity("CONV_2D", draw(geometries()), [x, weights, bias], tolerance=2e-6)


@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_int8_padding_adds_nothing(zero_point):
    """An input that is 0 everywhere gives the bias, at the border too."""
    x = Operand(np.full((1, 4, 4, 2), zero_point, np.int8), Quantization(0.5, zero_point))
    weights = Operand(np.full((3, 3, 3, 2), 127, np.int8), Quantization(0.1), True)
    bias = Operand(np.array([0, 100, -100], np.int32), Quantization(0.05), True)
    y = assert_parity("CONV_2D", Conv2DAttributes(padding="SAME"), [x, weights, bias], Quantization(0.05, 7))
    np.testing.assert_array_equal(y, np.broadcast_to([7, 107, -93], y.shape))


def test_int8_without_bias_is_a_bias_of_zero(rng):
    x = Operand(draws.int8(rng, 1, 4, 4, 2), Quantization(0.5, 3))
    weights = Operand(draws.int8(rng, 3, 3, 3, 2), Quantization(0.1), True)
    zeros = Operand(np.zeros(3, np.int32), Quantization(0.05), True)
    attributes, q = Conv2DAttributes(), [Quantization(20.0, 0)]
    np.testing.assert_array_equal(
        run_reference("CONV_2D", attributes, [x, weights], q),
        run_reference("CONV_2D", attributes, [x, weights, zeros], q),
    )


def test_int8_of_many_products_is_exact():
    """Sums beyond float32's 24 bits."""
    x = Operand(np.full((1, 3, 3, 400), 127, np.int8), Quantization(1.0, -128))
    weights = Operand(np.full((2, 3, 3, 400), 127, np.int8), Quantization(1.0), True)
    weights.value[1, 0, 0, 0] = 126
    bias = Operand(np.array([-116586000 + 3, -116586000 + 3], np.int32), Quantization(1.0), True)
    y = assert_parity("CONV_2D", Conv2DAttributes(), [x, weights, bias], Quantization(2.0, 0))
    assert y.ravel().tolist() == [2, -126]


def test_the_rule_of_the_file_decides_the_rounding():
    """0.49999997 steps: rounding twice makes a whole step of it, float32 rounds to even and makes none."""
    x = Operand(np.full((1, 1, 1, 1), 100, np.int8), Quantization(1.0))
    weights = Operand(np.full((1, 1, 1, 1), 10, np.int8), Quantization(0.4999999), True)
    output = [Quantization(1000.0)]
    assert run_reference("CONV_2D", Conv2DAttributes(), [x, weights], output)[0].item() == 1
    with fixedpoint.requantization("FP32_ROUND_EVEN"):
        assert run_reference("CONV_2D", Conv2DAttributes(), [x, weights], output)[0].item() == 0


def infer(x, weights, op="CONV_2D", dtype=FLOAT, **attributes):
    attributes = Conv2DAttributes(**attributes)
    ops.get(op).check(attributes)
    return ops.get(op).infer(attributes, [TensorType(x, dtype), TensorType(weights, dtype)], [None, None])[0].shape


def test_infers_what_is_known():
    assert infer((None, 9, None, 3), (8, 3, 3, 3), padding="SAME", stride_h=2) == (None, 5, None, 8)
    assert infer((None, 9, None, 3), (8, 3, None, 3), dilation_h=2) == (None, 5, None, 8)
    assert infer(None, (8, 3, 3, 3)) == (None, None, None, 8)
    assert infer((1, 9, 9, 4), None) == (1, None, None, None)
    assert infer((1, 9, 9, 4), (1, 3, 3, 8), "DEPTHWISE_CONV_2D") == (1, 7, 7, 8)
    assert infer((1 << 30, 1 << 30, 5, 3), (8, 3, 3, 3)) == (1 << 30, (1 << 30) - 2, 3, 8)
    assert infer((1, 5, 5, 3), (8, 3, 3, 3), padding="EXPLICIT", pads=(0, 1, 2, 0)) == (1, 4, 5, 8)


@pytest.mark.parametrize(
    ("x", "weights", "attributes"),
    [
        ((1, 9, 9), (8, 3, 3, 3), {}),
        ((1, 9, 9, 3), (8, 3, 3), {}),
        ((1, 9, 9, 4), (8, 3, 3, 3), {}),
        ((1, 9, 9, 6), (9, 3, 3, 3), {}),
        ((1, 9, 9, 0), (9, 3, 3, 0), {}),
        ((1, 2, 9, 3), (8, 3, 3, 3), {}),
        ((1, 0, 9, 3), (8, 3, 3, 3), {"padding": "SAME"}),
        ((1, 9, 9, 3), (8, 0, 3, 3), {}),
        ((1, 4, 9, 3), (8, 3, 3, 3), {"dilation_h": 2}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"stride_h": 0}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"dilation_w": -1}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"padding": "CIRCULAR"}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"padding": "EXPLICIT", "pads": (1, 1)}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"padding": "EXPLICIT", "pads": (1, 1, -1, 1)}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"padding": "SAME", "pads": (1, 1, 1, 1)}),
        ((1, 9, 9, 3), (8, 3, 3, 3), {"activation": "CLAMP", "clamp_min": 2.0, "clamp_max": 1.0}),
    ],
)
def test_refuses_what_does_not_fit(x, weights, attributes):
    with pytest.raises(ShapeError, match=r"\d|CIRCULAR|channels|kernel"):
        infer(x, weights, **attributes)


@pytest.mark.parametrize("weights", [(2, 3, 3, 8), (1, 3, 3, 6), (1, 3, 3, 2)])
def test_depthwise_refuses_what_does_not_fit(weights):
    with pytest.raises(ShapeError):
        infer((1, 9, 9, 4), weights, "DEPTHWISE_CONV_2D")


def test_refuses_dtypes():
    for dtype in (np.int32, np.uint8, np.bool_):
        with pytest.raises(UnsupportedError, match="CONV_2D"):
            infer((1, 9, 9, 3), (8, 3, 3, 3), dtype=dtype)
    op, x = ops.get("CONV_2D"), TensorType((1, 9, 9, 3), np.int8)
    weights, none = TensorType((8, 3, 3, 3), np.int8), [None] * 3
    with pytest.raises(ShapeError, match="cast"):
        op.infer(Conv2DAttributes(), [x, TensorType((8, 3, 3, 3), np.float32)], none)
    with pytest.raises(UnsupportedError, match="bias"):
        op.infer(Conv2DAttributes(), [x, weights, TensorType((8,), np.float32)], none)
    with pytest.raises(ShapeError, match="bias"):
        op.infer(Conv2DAttributes(), [x, weights, TensorType((7,), np.int32)], none)


def test_int8_without_scales_is_refused():
    x, weights = np.zeros((1, 3, 3, 2), np.int8), np.zeros((3, 3, 3, 2), np.int8)
    with pytest.raises(ShapeError, match="scale"):
        run_reference("CONV_2D", Conv2DAttributes(), [Operand(x), Operand(weights)])
