"""Convolutions, transposed ones and dense layers on the engine, against the references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Node, Quantization, Tensor
from schema.ops.attributes import BatchMatMulAttributes, Conv2DAttributes, Conv3DAttributes, FullyConnectedAttributes
from schema.ops.windows import output_size
from tests.support.engine import compare
from tests.support.operands import ACTIVATIONS, float_operands, int8_operands


@st.composite
def convolutions(draw, transposed=False):
    """(input shape, weights shape OHWI, attributes) of a 2-D convolution that fits."""
    groups = 1 if transposed else draw(st.sampled_from([1, 1, 2, 3]))
    per_group = draw(st.sampled_from([1, 2, 3, 4, 7, 16]))
    out = groups * draw(st.sampled_from([1, 3, 16, 17, 33, 40]))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    fields = {
        "stride_h": draw(st.integers(1, 3)),
        "stride_w": draw(st.integers(1, 3)),
        "dilation_h": draw(st.integers(1, 2)),
        "dilation_w": draw(st.integers(1, 2)),
        "padding": draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"])),
        **draw(ACTIVATIONS),
    }
    if fields["padding"] == "EXPLICIT":
        fields["pads"] = tuple(draw(st.integers(0, 3)) for _ in range(4))
    reach = [(k - 1) * fields[f"dilation_{a}"] + 1 for k, a in zip(kernel, "hw", strict=True)]
    size = [r + draw(st.integers(0, 6)) for r in reach]
    return (draw(st.integers(1, 3)), *size, groups * per_group), (out, *kernel, per_group), Conv2DAttributes(**fields)


@given(case=convolutions(), seed=st.integers(0, 99), with_bias=st.booleans(), threads=st.sampled_from([1, 2]))
def test_conv_2d_float(case, seed, with_bias, threads):
    x_shape, w_shape, attributes = case
    rng = np.random.default_rng(seed)
    x, input_, constants, y = float_operands(rng, x_shape, w_shape, w_shape[0], with_bias)
    compare([Node("CONV_2D", [input_, *constants], [y], attributes)], [input_], [y], [x], rtol=1e-5, threads=threads)


@given(
    case=convolutions(),
    seed=st.integers(0, 99),
    with_bias=st.booleans(),
    per_channel=st.booleans(),
    zeros=st.sampled_from([(0, 0), (-128, -128), (127, 127), (3, -5)]),
    rule=st.sampled_from(["TFLITE_DOUBLE", "FP32_ROUND_EVEN"]),
)
def test_conv_2d_int8(case, seed, with_bias, per_channel, zeros, rule):
    x_shape, w_shape, attributes = case
    rng = np.random.default_rng(seed)
    depth = int(np.prod(w_shape[1:]))
    x, input_, constants, y = int8_operands(rng, x_shape, w_shape, w_shape[0], with_bias, 0, per_channel, zeros, depth)
    node = Node("CONV_2D", [input_, *constants], [y], attributes)
    compare([node], [input_], [y], [x], requantization=rule)


@pytest.mark.parametrize("dtype", ["float", "int8"])
@given(case=convolutions(transposed=True), seed=st.integers(0, 99), with_bias=st.booleans())
def test_transpose_conv(dtype, case, seed, with_bias):
    (batch, h, w, out), (channels, *kernel, _), attributes = case
    size = output_size(attributes, "hw", (h, w), kernel)
    rng = np.random.default_rng(seed)
    make = float_operands if dtype == "float" else int8_operands
    x, input_, constants, y = make(rng, (batch, *size, channels), (out, *kernel, channels), out, with_bias)
    shape = Tensor.from_array("shape", np.array([batch, h, w, out], np.int32))
    node = Node("TRANSPOSE_CONV", [shape, constants[0], input_, *constants[1:]], [y], attributes)
    compare([node], [input_], [y], [x], rtol=1e-5 if dtype == "float" else 0)


@st.composite
def volumes(draw, transposed=False):
    """(volume's shape, weights' shape DHWIO, attributes) of a 3-D convolution that fits."""
    groups = 1 if transposed else draw(st.sampled_from([1, 1, 2]))
    per_group = draw(st.sampled_from([1, 3, 4, 16]))
    out = groups * draw(st.sampled_from([1, 3, 17, 32]))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 3))
    strides, dilations = (draw(st.tuples(*[st.integers(1, 2)] * 3)) for _ in range(2))
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    pads = tuple(draw(st.integers(0, 2)) for _ in range(6)) if padding == "EXPLICIT" else ()
    attributes = Conv3DAttributes(*strides, *dilations, padding, pads, **draw(ACTIVATIONS))
    size = [(k - 1) * d + 1 + draw(st.integers(0, 4)) for k, d in zip(kernel, dilations, strict=True)]
    return (draw(st.integers(1, 2)), *size, groups * per_group), (*kernel, per_group, out), attributes


def volume_operands(dtype, rng, x_shape, w_shape, axis, with_bias):
    if dtype == "float":
        return float_operands(rng, x_shape, w_shape, w_shape[axis], with_bias)
    return int8_operands(rng, x_shape, w_shape, w_shape[axis], with_bias, axis, True, (-9, 4), 60)


@pytest.mark.parametrize("dtype", ["float", "int8"])
@given(
    case=volumes(),
    seed=st.integers(0, 99),
    with_bias=st.booleans(),
    threads=st.sampled_from([1, 2]),
    rule=st.sampled_from(["TFLITE_DOUBLE", "FP32_ROUND_EVEN"]),
)
def test_conv_3d(dtype, case, seed, with_bias, threads, rule):
    x_shape, w_shape, attributes = case
    x, input_, constants, y = volume_operands(dtype, np.random.default_rng(seed), x_shape, w_shape, 4, with_bias)
    node = Node("CONV_3D", [input_, *constants], [y], attributes)
    rtol = 1e-5 if dtype == "float" else 0
    compare([node], [input_], [y], [x], rtol=rtol, threads=threads, requantization=rule)


@pytest.mark.parametrize("dtype", ["float", "int8"])
@given(case=volumes(transposed=True), seed=st.integers(0, 99), with_bias=st.booleans())
def test_conv_3d_transpose(dtype, case, seed, with_bias):
    (batch, *volume, out), (*kernel, channels, _), attributes = case
    size = output_size(attributes, "dhw", volume, kernel)
    rng, shapes = np.random.default_rng(seed), ((batch, *size, channels), (*kernel, out, channels))
    x, input_, constants, y = volume_operands(dtype, rng, *shapes, 3, with_bias)
    shape = Tensor.from_array("shape", np.array([batch, *volume, out], np.int32))
    node = Node("CONV_3D_TRANSPOSE", [shape, constants[0], input_, *constants[1:]], [y], attributes)
    compare([node], [input_], [y], [x], rtol=1e-5 if dtype == "float" else 0)


def test_conv_3d_with_few_rows_and_with_many(rng):
    """Machines with tile registers use them for 32 rows and more; the deepest windows have sums of many products."""
    for shape, weights in [((1, 2, 3, 4, 70), (2, 3, 3, 70, 40)), ((1, 4, 28, 28, 16), (3, 3, 3, 16, 40))]:
        x, input_, constants, y = int8_operands(rng, shape, weights, 40, True, 4, depth=int(np.prod(weights[:4])))
        node = Node("CONV_3D", [input_, *constants], [y], Conv3DAttributes(padding="SAME", activation="RELU"))
        compare([node], [input_], [y], [x], threads=2)


@pytest.mark.parametrize("dtype", ["float", "int8"])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 50])
@pytest.mark.parametrize(("depth", "out"), [(1, 1), (7, 10), (64, 100), (257, 33), (2000, 8)])
def test_fully_connected(dtype, rows, depth, out, rng):
    make = float_operands if dtype == "float" else int8_operands
    x, input_, constants, y = make(rng, (rows, depth), (out, depth), out, True)
    node = Node("FULLY_CONNECTED", [input_, *constants], [y], FullyConnectedAttributes(activation="RELU"))
    compare([node], [input_], [y], [x], rtol=1e-5 if dtype == "float" else 0, threads=2)


def test_fully_connected_flattens(rng):
    x, input_, constants, y = float_operands(rng, (2, 3, 4), (5, 12), 5, False)
    attributes = FullyConnectedAttributes(keep_num_dims=False)
    compare([Node("FULLY_CONNECTED", [input_, *constants], [y], attributes)], [input_], [y], [x], rtol=1e-5)


def test_large_layers_are_shared_among_workers(rng):
    for shape, weights in [
        ((1, 7, 7, 320), (200, 1, 1, 320)),
        ((1, 56, 56, 16), (24, 3, 3, 16)),
        ((1, 1, 1, 512), (1000, 1, 1, 512)),
    ]:
        for make, rtol in ((float_operands, 1e-5), (int8_operands, 0)):
            x, input_, constants, y = make(rng, shape, weights, weights[0], True)
            node = Node("CONV_2D", [input_, *constants], [y], Conv2DAttributes(padding="SAME"))
            compare([node], [input_], [y], [x], rtol=rtol, threads=2)


def test_accumulators_wrap_as_int32_do(rng):
    """Beyond 2**31 the intermediate sums of x + 128 wrap, the result does not."""
    depth = 70_000
    x = np.full((1, depth), 127, np.int8)
    w = np.full((3, depth), 127, np.int8)
    w[1] = -127
    w[2, ::2] = -127
    input_ = Tensor("x", np.int8, x.shape, Quantization(0.1, 127))
    weights = Tensor.from_array("w", w, Quantization(0.1, 0))
    y = Tensor("y", np.int8, None, Quantization(0.1, 7))
    compare([Node("FULLY_CONNECTED", [input_, weights], [y], FullyConnectedAttributes())], [input_], [y], [x])


@st.composite
def batched(draw):
    """(shape of a, shape of b, attributes): leading axes that broadcast, either matrix transposed."""
    m, k, n = (draw(st.sampled_from([1, 2, 5, 7, 16, 33, 40])) for _ in range(3))
    lead = draw(st.sampled_from([((), ()), ((3,), (3,)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2,))]))
    attributes = BatchMatMulAttributes(draw(st.booleans()), draw(st.booleans()))
    a, b = ((k, m) if attributes.adj_x else (m, k)), ((n, k) if attributes.adj_y else (k, n))
    return (*lead[0], *a), (*lead[1], *b), attributes


@given(case=batched(), seed=st.integers(0, 99), threads=st.sampled_from([1, 2]))
def test_batch_matmul_float(case, seed, threads):
    *shapes, attributes = case
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    tensors, y = [Tensor("x", np.float32, shape) for shape in shapes], Tensor("y", np.float32)
    compare([Node("BATCH_MATMUL", tensors, [y], attributes)], tensors, [y], arrays, rtol=1e-5, threads=threads)


@given(
    case=batched(),
    seed=st.integers(0, 99),
    zeros=st.sampled_from([(0, 0), (-128, 127), (3, -5)]),
    rule=st.sampled_from(["TFLITE_DOUBLE", "FP32_ROUND_EVEN"]),
)
def test_batch_matmul_int8(case, seed, zeros, rule):
    *shapes, attributes = case
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes]
    tensors = [Tensor("x", np.int8, shape, Quantization(0.05, zero)) for shape, zero in zip(shapes, zeros, strict=True)]
    y = Tensor("y", np.int8, None, Quantization(0.7, 11))
    compare([Node("BATCH_MATMUL", tensors, [y], attributes)], tensors, [y], arrays, requantization=rule)


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, True)])
def test_batch_matmul_int8_of_several_blocks_of_rows(transposed, rng):
    """Which share the panel that they are multiplied with."""
    a, b = (200, 45), (45, 70)
    shapes = [(3, *(shape[::-1] if turned else shape)) for shape, turned in zip((a, b), transposed, strict=True)]
    arrays = [rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes]
    tensors = [
        Tensor("x", np.int8, shape, Quantization(0.05, zero)) for shape, zero in zip(shapes, (3, -5), strict=True)
    ]
    y = Tensor("y", np.int8, None, Quantization(0.7, 11))
    node = Node("BATCH_MATMUL", tensors, [y], BatchMatMulAttributes(*transposed))
    (result,) = compare([node], tensors, [y], arrays, threads=2)
    assert len(np.unique(result)) > 100


@pytest.mark.parametrize("rows", [12, 13, 18, 19, 24, 31, 32, 100])
def test_int8_rows_that_fill_no_block(rows, rng):
    """Blocks of 12 and of 6 rows, and tiles of 32: what is left is computed with rows that were computed already."""
    x, input_, constants, y = int8_operands(rng, (rows, 70), (45, 70), 45, True)
    node = Node("FULLY_CONNECTED", [input_, *constants], [y], FullyConnectedAttributes())
    compare([node], [input_], [y], [x])
