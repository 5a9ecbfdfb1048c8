"""TRANSPOSE_CONV, CONV_3D and CONV_3D_TRANSPOSE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import Conv2DAttributes, Conv3DAttributes
from tests.support import drawing_int8 as draws
from tests.support import drawing_int16
from tests.support.drawing import generators
from tests.support.litert import Operand
from tests.support.parity import assert_agrees, assert_close, assert_parity, run_reference

FLOAT = np.dtype(np.float32)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "extra"),
    [
        ((3, 3), 1, 1, None),
        ((3, 2), 2, 1, None),
        ((2, 3), 3, 1, None),
        ((3, 3), 2, 1, 1),
        ((3, 3), 1, 2, None),
        ((1, 1), 2, 1, 0),
    ],
)
def test_transpose_conv_as_keras(rng, padding, kernel, stride, dilation, extra):
    keras = pytest.importorskip("keras")
    x = rng.normal(size=(2, 5, 4, 3)).astype(np.float32)
    layer = keras.layers.Conv2DTranspose(
        6, kernel, stride, padding, extra, dilation_rate=dilation, bias_initializer="normal"
    )
    expected = np.asarray(layer(x))
    weights, bias = layer.get_weights()  # H, W, out, in
    attributes = Conv2DAttributes(stride, stride, dilation, dilation, padding.upper())
    shape = np.array(expected.shape, np.int32)
    inputs = [Operand(shape), Operand(np.moveaxis(weights, 2, 0)), Operand(x), Operand(bias)]
    assert_close(run_reference("TRANSPOSE_CONV", attributes, inputs)[0], expected, 1e-5)


@given(st.data())
def test_transpose_conv_parity(data):
    draw, rng = data.draw, data.draw(generators)
    padding, strides = draw(st.sampled_from(["SAME", "VALID"])), (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    depth, out, kernel = (
        draw(st.integers(1, 5)),
        draw(st.integers(1, 5)),
        (draw(st.integers(1, 3)), draw(st.integers(1, 4))),
    )
    if padding == "SAME":
        size = [n * s - draw(st.integers(0, s - 1)) for n, s in zip((4, 5), strides, strict=True)]
    else:
        size = [(n - 1) * s + k + draw(st.integers(0, s - 1)) for n, s, k in zip((4, 5), strides, kernel, strict=True)]
    shape = Operand(np.array([2, *size, out], np.int32), None, True)
    attributes = Conv2DAttributes(*strides, padding=padding)
    with_bias = draw(st.booleans())
    x = Operand(rng.normal(size=(2, 4, 5, depth)).astype(np.float32))
    weights = Operand(rng.normal(size=(out, *kernel, depth)).astype(np.float32), None, True)
    bias = [Operand(rng.normal(size=out).astype(np.float32), None, True)][:with_bias]
    assert_parity("TRANSPOSE_CONV", attributes, [shape, weights, x, *bias], tolerance=2e-6)
    x = Operand(draws.int8(rng, 2, 4, 5, depth), draw(draws.quantizations()))
    weights = draws.weights(draw, rng, (out, *kernel, depth), 0)
    typical = float(x.quantization.scale[0]) * float(np.median(weights.quantization.scale)) * 100
    bias = [draws.bias(rng, x, weights, out)][:with_bias]
    assert_parity("TRANSPOSE_CONV", attributes, [shape, weights, x, *bias], draws.output(draw, typical))


def infer(op, attributes, shape, weights, x, dtype=FLOAT):
    kind = ops.get(op)
    kind.check(attributes)
    size = len(x if x is not None else weights)
    types = [TensorType((size,), np.int32), TensorType(weights, dtype), TensorType(x, dtype)]
    value = None if shape is None else np.array(shape, np.int64)
    return kind.infer(attributes, types, [value, None, None])[0].shape


def test_transpose_conv_infers_what_is_known():
    same = Conv2DAttributes(2, 2, padding="SAME")
    assert infer("TRANSPOSE_CONV", same, None, (6, 3, 3, 4), (None, 5, 5, 4)) == (None, None, None, 6)
    assert infer("TRANSPOSE_CONV", same, (2, 9, 10, 6), (6, 3, 3, 4), (None, 5, 5, 4)) == (2, 9, 10, 6)
    assert infer("TRANSPOSE_CONV", same, (2, 9, 10, 6), None, (2, None, 5, 4)) == (2, 9, 10, 6)


@pytest.mark.parametrize(
    ("shape", "weights", "x"),
    [
        ((2, 11, 10, 6), (6, 3, 3, 4), (2, 5, 5, 4)),  # 11 rows come from 6
        ((3, 10, 10, 6), (6, 3, 3, 4), (2, 5, 5, 4)),
        ((2, 10, 10, 7), (6, 3, 3, 4), (2, 5, 5, 4)),
        ((2, 10, 10, 6), (6, 3, 3, 3), (2, 5, 5, 4)),
        ((2, -1, 10, 6), (6, 3, 3, 4), (2, 5, 5, 4)),
        ((2, 10, 10, 6), (6, 3, 3), (2, 5, 5, 4)),
        ((2, 10, 10, 6), (6, 3, 3, 4), (2, 5, 4)),
    ],
)
def test_transpose_conv_refuses_what_does_not_fit(shape, weights, x):
    with pytest.raises(ShapeError):
        infer("TRANSPOSE_CONV", Conv2DAttributes(2, 2, padding="SAME"), shape, weights, x)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_conv_3d_as_tensorflow(rng, padding, stride, dilation):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=(2, 5, 6, 7, 3)).astype(np.float32)
    weights, bias = rng.normal(size=(2, 3, 2, 3, 4)).astype(np.float32), rng.normal(size=4).astype(np.float32)
    steps, rates = (1, stride, stride, stride, 1), (1, dilation, dilation, dilation, 1)
    attributes = Conv3DAttributes(*[stride] * 3, *[dilation] * 3, padding)
    y = run_reference("CONV_3D", attributes, [Operand(x), Operand(weights), Operand(bias)])[0]
    assert_close(y, tf.nn.conv3d(x, weights, steps, padding, dilations=rates) + bias, 1e-5)


@given(st.data())
def test_conv_3d_parity(data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(rng.normal(size=(1, 4, 5, 3, 2)).astype(np.float32))
    weights = Operand(rng.normal(size=(2, draw(st.integers(1, 3)), 2, 2, 3)).astype(np.float32), None, True)
    bias = Operand(rng.normal(size=3).astype(np.float32), None, True)
    strides = [draw(st.integers(1, 3)) for _ in range(3)]
    attributes = Conv3DAttributes(
        *strides, padding=draw(st.sampled_from(["SAME", "VALID"])), activation=draw(draws.activations)
    )
    assert_parity("CONV_3D", attributes, [x, weights, bias], tolerance=2e-6)


@given(st.data())
def test_conv_3d_transpose_parity(data):
    draw, rng = data.draw, data.draw(generators)
    strides = [draw(st.integers(1, 3)) for _ in range(3)]
    size = [n * s - draw(st.integers(0, s - 1)) for n, s in zip((3, 4, 2), strides, strict=True)]
    x = Operand(rng.normal(size=(1, 3, 4, 2, 3)).astype(np.float32))
    weights = Operand(rng.normal(size=(draw(st.integers(1, 3)), 2, 3, 4, 3)).astype(np.float32), None, True)
    bias = Operand(rng.normal(size=4).astype(np.float32), None, True)
    shape = Operand(np.array([1, *size, 4], np.int32), None, True)
    attributes = Conv3DAttributes(*strides, padding="SAME")
    assert_parity("CONV_3D_TRANSPOSE", attributes, [shape, weights, x, bias], tolerance=2e-6)


def quantized_operands(draw, rng, dtype, shape, kernel, axis):
    """(x, weights, bias, output) of int8, or of int16 with int8 weights."""
    channels = kernel[axis]
    if dtype == np.int8:
        x = Operand(draws.int8(rng, *shape), draw(draws.quantizations()))
        weights = draws.weights(draw, rng, kernel, axis)
        typical = float(x.quantization.scale[0]) * float(np.median(weights.quantization.scale)) * 100
        return x, weights, draws.bias(rng, x, weights, channels), draws.output(draw, typical)
    x = Operand(drawing_int16.int16(rng, *shape), draw(drawing_int16.quantizations()))
    weights = draws.weights(draw, rng, kernel, axis, spread=1e3)
    typical = float(x.quantization.scale[0] * weights.quantization.scale.max()) * 1e6
    return x, weights, drawing_int16.bias(rng, x, weights, channels), drawing_int16.output(draw, typical)


def real(integers, quantization):
    return (integers.astype(np.float64) - quantization.zero_point) * quantization.scale.astype(np.float64)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@given(data=st.data())
def test_conv_3d_of_integers_is_conv_2d(dtype, data):
    """LiteRT has floats only: the slices of a window in depth are channels of a plane."""
    draw, rng = data.draw, data.draw(generators)
    depth, step, channels, out = (draw(st.integers(1, 3)) for _ in range(4))
    kernel = (depth, draw(st.integers(1, 3)), draw(st.integers(1, 3)), channels, out)
    x, weights, bias, output = quantized_operands(draw, rng, dtype, (1, 5, 4, 5, channels), kernel, 4)
    rows, activation = draw(st.integers(1, 2)), draw(draws.activations)
    flat = weights.value.transpose(4, 1, 2, 0, 3).reshape(out, *kernel[1:3], depth * channels)
    flat = Operand(flat, Quantization(weights.quantization.scale, 0, 0), True)
    planes = []
    for first in range(0, 5 - depth + 1, step):
        plane = np.moveaxis(x.value[:, first : first + depth], 1, 3).reshape(1, 4, 5, depth * channels)
        inputs = [Operand(plane, x.quantization), flat, bias]
        planes += run_reference("CONV_2D", Conv2DAttributes(rows, activation=activation), inputs, [output])
    attributes = Conv3DAttributes(step, rows, activation=activation)
    expected = real(np.stack(planes, axis=1), output)
    assert_agrees("CONV_3D", attributes, [x, weights, bias], expected, output, steps=0)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@given(data=st.data())
def test_conv_3d_transpose_of_integers_is_transpose_conv(dtype, data):
    """LiteRT has floats only: a kernel of depth 1 works on each plane."""
    draw, rng = data.draw, data.draw(generators)
    stride, channels, out = (draw(st.integers(1, 3)) for _ in range(3))
    kernel = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), out, channels)
    x, weights, bias, output = quantized_operands(draw, rng, dtype, (1, 3, 4, 3, channels), kernel, 3)
    flat = Operand(weights.value[0].transpose(2, 0, 1, 3), Quantization(weights.quantization.scale, 0, 0), True)
    size = [4 * stride, 3 * stride, out]
    plane = Operand(np.array([1, *size], np.int32), None, True)
    attributes = Conv2DAttributes(stride, stride, padding="SAME")
    planes = []
    for depth in range(3):
        inputs = [plane, flat, Operand(x.value[:, depth], x.quantization), bias]
        planes += run_reference("TRANSPOSE_CONV", attributes, inputs, [output])
    volume = Operand(np.array([1, 3, *size], np.int32), None, True)
    attributes = Conv3DAttributes(1, stride, stride, padding="SAME")
    expected = real(np.stack(planes, axis=1), output)
    assert_agrees("CONV_3D_TRANSPOSE", attributes, [volume, weights, x, bias], expected, output, steps=0)


def test_conv_3d_int8_is_near_the_float_op(rng):
    x, weights = draws.int8(rng, 1, 3, 4, 3, 5), draws.int8(rng, 2, 2, 2, 5, 4)
    scales = np.array([0.01, 0.02, 0.04, 0.08], np.float32)
    inputs = [Operand(x, Quantization(0.5, -7)), Operand(weights, Quantization(scales, axis=4), True)]
    y = run_reference("CONV_3D", Conv3DAttributes(padding="SAME"), inputs, [Quantization(4.0, 11)])[0]
    real = [Operand((x.astype(np.float32) + 7) * 0.5), Operand(weights * scales)]
    expected = run_reference("CONV_3D", Conv3DAttributes(padding="SAME"), real)[0] / 4 + 11
    assert np.abs(y - np.clip(expected, -128, 127)).max() <= 0.5001


def test_conv_3d_refuses_what_does_not_fit():
    def conv3d(x, weights, dtype=FLOAT):
        inputs = [TensorType(x, dtype), TensorType(weights, dtype)]
        return ops.get("CONV_3D").infer(Conv3DAttributes(), inputs, [None, None])[0].shape

    assert conv3d((None, 5, None, 6, 3), (2, 3, 2, 3, 4)) == (None, 4, None, 5, 4)
    for x, weights in [
        ((1, 5, 5, 3), (2, 3, 2, 3, 4)),
        ((1, 5, 5, 5, 4), (2, 3, 2, 3, 4)),
        ((1, 1, 5, 5, 3), (2, 3, 2, 3, 4)),
    ]:
        with pytest.raises(ShapeError):
            conv3d(x, weights)
    with pytest.raises(UnsupportedError):
        conv3d((1, 5, 5, 5, 3), (2, 3, 2, 3, 4), np.int32)
