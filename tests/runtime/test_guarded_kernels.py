"""No kernel touches memory outside of its operands and its scratch."""

import os
import subprocess
import sys

import numpy as np
import pytest

from schema import Node, Quantization, Tensor, evaluate
from schema.ops.attributes import (
    BatchMatMulAttributes,
    Conv2DAttributes,
    FullyConnectedAttributes,
    Pool2DAttributes,
    ReduceAttributes,
    SoftmaxAttributes,
)
from tests.support.guarded import run_guarded
from tests.support.operands import float_operands, int8_operands

pytestmark = pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect")

CHANNELS = [1, 3, 16, 17, 33]


@pytest.fixture(params=[True, False], ids=["end", "start"])
def at_end(request):
    return request.param


@pytest.fixture(params=["float32", "int8"])
def operands(request):
    return float_operands if request.param == "float32" else int8_operands


def check(node, inputs, at_end):
    arrays = [None if t is None else inputs.get(t, t.value) for t in node.inputs]
    for result, expected in zip(run_guarded(node, inputs, at_end), evaluate.run_node(node, arrays), strict=True):
        if expected.dtype == np.int8:
            np.testing.assert_array_equal(result, expected)
        else:
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(("kernel", "groups"), [((1, 1), 1), ((3, 3), 1), ((2, 5), 1), ((3, 3), 3)])
def test_conv_2d(operands, channels, kernel, groups, at_end, rng):
    x_shape, w_shape = (2, 5, 6, channels * groups), (7 * groups, *kernel, channels)
    x, input_, constants, y = operands(rng, x_shape, w_shape, w_shape[0], True)
    attributes = Conv2DAttributes(stride_h=1 if kernel == (1, 1) else 2, padding="SAME")
    check(Node("CONV_2D", [input_, *constants], [y], attributes), {input_: x}, at_end)


@pytest.mark.parametrize(
    ("size", "channels", "kernel", "stride"),
    [((9, 70), 3, (3, 3), 2), ((70, 70), 4, (3, 3), 2), ((12, 20), 16, (3, 3), 1), ((8, 33), 20, (1, 5), 1)],
)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_2d_of_long_lines(operands, size, channels, kernel, stride, padding, at_end, rng):
    x, input_, constants, y = operands(rng, (1, *size, channels), (17, *kernel, channels), 17, True)
    attributes = Conv2DAttributes(stride_h=stride, stride_w=stride, padding=padding)
    check(Node("CONV_2D", [input_, *constants], [y], attributes), {input_: x}, at_end)


@pytest.mark.parametrize("channels", CHANNELS)
def test_transpose_conv(operands, channels, at_end, rng):
    x, input_, constants, y = operands(rng, (1, 3, 4, channels), (17, 3, 2, channels), 17, True)
    shape = Tensor.from_array("shape", np.array([1, 6, 8, 17], np.int32))
    node = Node(
        "TRANSPOSE_CONV", [shape, constants[0], input_, constants[1]], [y], Conv2DAttributes(2, 2, 1, 1, "SAME")
    )
    check(node, {input_: x}, at_end)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise(operands, channels, multiplier, at_end, rng):
    out = channels * multiplier
    extra = {"axis": 3} if operands is int8_operands else {}
    x, input_, constants, y = operands(rng, (2, 5, 6, channels), (1, 3, 2, out), out, True, **extra)
    attributes = Conv2DAttributes(2, 1, 1, 2, "SAME")
    check(Node("DEPTHWISE_CONV_2D", [input_, *constants], [y], attributes), {input_: x}, at_end)


@pytest.mark.parametrize("rows", [1, 5, 13])
@pytest.mark.parametrize("depth", [1, 6, 64, 67])
def test_fully_connected(operands, rows, depth, at_end, rng):
    x, input_, constants, y = operands(rng, (rows, depth), (35, depth), 35, True)
    check(Node("FULLY_CONNECTED", [input_, *constants], [y], FullyConnectedAttributes()), {input_: x}, at_end)


@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
def test_batch_matmul(operands, transposed, at_end, rng):
    shapes = [(2, 7, 5), (2, 5, 33)]
    shapes = [(b, n, m) if swap else (b, m, n) for (b, m, n), swap in zip(shapes, transposed, strict=True)]
    if operands is float_operands:
        arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
        tensors, y = [Tensor("x", np.float32, s) for s in shapes], Tensor("y", np.float32)
    else:
        arrays = [rng.integers(-128, 128, s, dtype=np.int8) for s in shapes]
        tensors = [Tensor("x", np.int8, s, Quantization(0.1, 3)) for s in shapes]
        y = Tensor("y", np.int8, None, Quantization(0.5, 1))
    node = Node("BATCH_MATMUL", tensors, [y], BatchMatMulAttributes(*transposed))
    check(node, dict(zip(tensors, arrays, strict=True)), at_end)


def _activation(operands, shape, rng, quantization):
    if operands is float_operands:
        return rng.standard_normal(shape).astype(np.float32), Tensor("x", np.float32, shape), Tensor("y", np.float32)
    x = rng.integers(-128, 128, shape, dtype=np.int8)
    return x, Tensor("x", np.int8, shape, Quantization(0.1, 3)), Tensor("y", np.int8, None, quantization)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pooling(operands, op, channels, at_end, rng):
    x, input_, y = _activation(operands, (2, 5, 6, channels), rng, Quantization(0.1, 3))
    check(Node(op, [input_], [y], Pool2DAttributes(3, 2, 2, 1, "SAME")), {input_: x}, at_end)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("axes", [[1, 2], [3]])
@pytest.mark.parametrize("op", ["MEAN", "REDUCE_MAX"])
def test_reductions(operands, op, axes, channels, at_end, rng):
    x, input_, y = _activation(operands, (2, 5, 6, channels), rng, Quantization(0.1, 3))
    node = Node(op, [input_, Tensor.from_array("axes", np.array(axes, np.int32))], [y], ReduceAttributes(False))
    check(node, {input_: x}, at_end)


@pytest.mark.parametrize("count", CHANNELS)
def test_softmax(operands, count, at_end, rng):
    x, input_, y = _activation(operands, (3, count), rng, Quantization(1 / 256, -128))
    check(Node("SOFTMAX", [input_], [y], SoftmaxAttributes()), {input_: x}, at_end)


def test_the_guard_catches_what_it_should():
    script = (
        "import ctypes, sys\n"
        "from tests.support.guarded import Guarded\n"
        "block = Guarded(10, True)\n"
        "block.bytes[...] = 7\n"
        "print(ctypes.c_uint8.from_address(block.address + 9).value, flush=True)\n"
        "ctypes.c_uint8.from_address(block.address + 10).value\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "7\n"
    assert done.returncode < 0
