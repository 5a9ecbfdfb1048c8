"""Convolutions with the addition after them, or the depthwise convolution before, as one kernel."""

import numpy as np
import pytest

import runtime
import schema
from runtime import profiling
from runtime.kernels.table import find_kernel
from runtime.plan import NativeStep
from schema import Model, Node, Tensor
from schema.ops.attributes import ArithmeticAttributes, Conv2DAttributes
from tests.support.engine import compare, graph_of, run
from tests.support.operands import float_operands, int8_operands


def block(rng, out=32, x_shape=(2, 9, 30, 8), make=float_operands, kernel=3, swap=False, activation="RELU", **fields):
    """(nodes, inputs, output, arrays): CONV_2D, and ADD of another input."""
    x, input_, constants, made = make(rng, x_shape, (out, kernel, kernel, x_shape[-1]), out, True)
    other = Tensor("other", made.dtype, (*x_shape[:-1], out), made.quantization)
    array = rng.normal(0, 30, other.shape).astype(other.dtype)
    y = Tensor("sum", made.dtype, None, made.quantization)
    operands = [other, made] if swap else [made, other]
    nodes = [
        Node("CONV_2D", [input_, *constants], [made], Conv2DAttributes(padding="SAME", **fields)),
        Node("ADD", operands, [y], ArithmeticAttributes(activation=activation)),
    ]
    return nodes, [input_, other], y, [x, array]


def kernels(nodes, inputs, outputs, arrays):
    steps = run(graph_of(nodes, inputs, outputs), arrays)[1]
    return [node.op for step in steps if isinstance(step, NativeStep) for node in step.nodes]


@pytest.mark.parametrize("out", [16, 32, 48, 80])
@pytest.mark.parametrize("x_shape", [(2, 9, 30, 8), (1, 7, 7, 300), (1, 1, 1, 64)])
@pytest.mark.parametrize("swap", [False, True])
def test_the_sum_is_the_kernels_result(out, x_shape, swap, rng):
    nodes, inputs, y, arrays = block(rng, out, x_shape, swap=swap)
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=2)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]


def test_both_operands_are_convolutions(rng):
    nodes, inputs, y, arrays = block(rng)
    x, input_, constants, made = float_operands(rng, (2, 9, 30, 16), (32, 1, 1, 16), 32, False)
    shortcut = Node("CONV_2D", [input_, *constants], [made], Conv2DAttributes())
    addition = Node("ADD", [nodes[0].outputs[0], made], [y], ArithmeticAttributes())
    compare([nodes[0], shortcut, addition], [inputs[0], input_], [y], [arrays[0], x], rtol=1e-5)
    assert kernels([nodes[0], shortcut, addition], [inputs[0], input_], [y], [arrays[0], x]) == ["CONV_2D", "CONV_2D"]


def test_near_misses(rng):
    def check(changed, outputs=None):
        nodes, inputs, y, arrays = changed
        outputs = [y] if outputs is None else outputs
        compare(nodes, inputs, outputs, arrays, rtol=1e-5 if y.dtype == np.float32 else 0)
        assert kernels(nodes, inputs, outputs, arrays) == ["CONV_2D", "ADD"]

    check(block(rng, out=20))  # channels that are no whole vectors
    check(_activated(rng))  # the sum is of activated numbers
    check(block(rng, make=int8_operands))
    changed = block(rng)
    check(changed, [changed[2], changed[0][0].outputs[0]])  # the convolution's own result is wanted too
    nodes, inputs, y, arrays = block(rng)
    inputs[1].shape, arrays[1] = (1, 1, 32), arrays[1][0, :1, :1]  # broadcast
    check((nodes, inputs, y, arrays))


def _activated(rng):
    nodes, inputs, y, arrays = block(rng)
    nodes[0].attributes = Conv2DAttributes(padding="SAME", activation="RELU")
    return nodes, inputs, y, arrays


def separable(rng, out=32, channels=40, size=(13, 30), batch=2, **fields):
    """(nodes, inputs, output, arrays): DEPTHWISE_CONV_2D 3x3, and CONV_2D 1x1."""
    x, input_, taps, middle = float_operands(rng, (batch, *size, channels), (1, 3, 3, channels), channels, True)
    _, _, kernel, y = float_operands(rng, (1,), (out, 1, 1, channels), out, True)
    nodes = [
        Node(
            "DEPTHWISE_CONV_2D",
            [input_, *taps],
            [middle],
            Conv2DAttributes(activation="RELU6", padding="SAME", **fields),
        ),
        Node("CONV_2D", [middle, *kernel], [y], Conv2DAttributes(activation="RELU")),
    ]
    return nodes, [input_], y, [x]


@pytest.mark.skipif(find_kernel("depthwise_3x3", "float32") is None, reason="this CPU has no kernel for it")
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(13, 30), (7, 7), (1, 1), (120, 5)])
@pytest.mark.parametrize(("out", "channels"), [(32, 40), (70, 64), (5, 3)])
def test_a_depthwise_convolution_makes_the_rows(stride, size, out, channels, rng):
    nodes, inputs, y, arrays = separable(rng, out, channels, size, stride_h=stride, stride_w=stride)
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=2)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]


@pytest.mark.skipif(find_kernel("depthwise_3x3", "float32") is None, reason="this CPU has no kernel for it")
def test_a_whole_residual_block(rng):
    channels = 48
    nodes, inputs, made, arrays = separable(rng, channels, channels)
    nodes[1].attributes = Conv2DAttributes()
    y = Tensor("sum", np.float32)
    nodes.append(Node("ADD", [inputs[0], made], [y], ArithmeticAttributes(activation="RELU6")))
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=2)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]


def test_near_misses_of_depthwise_convolutions(rng):
    def check(changed, outputs=None):
        nodes, inputs, y, arrays = changed
        outputs = [y] if outputs is None else outputs
        compare(nodes, inputs, outputs, arrays, rtol=1e-5)
        assert kernels(nodes, inputs, outputs, arrays) == ["DEPTHWISE_CONV_2D", "CONV_2D"]

    check(separable(rng, dilation_w=2))
    check(separable(rng, stride_h=3, stride_w=3))
    changed = separable(rng)
    check(changed, [changed[2], changed[0][0].outputs[0]])
    nodes, inputs, y, arrays = separable(rng)
    nodes[1].attributes = Conv2DAttributes(stride_h=2, stride_w=2)
    check((nodes, inputs, y, arrays))


@pytest.mark.skipif(find_kernel("depthwise_3x3", "float32") is None, reason="this CPU has no kernel for it")
def test_the_profile_counts_all_that_is_computed_together(rng):
    nodes, inputs, made, arrays = separable(rng, 48, 48)
    nodes[1].attributes = Conv2DAttributes()
    y = Tensor("sum", np.float32)
    nodes.append(Node("ADD", [inputs[0], made], [y], ArithmeticAttributes()))
    model = runtime.load(schema.write(Model([graph_of(nodes, inputs, [y])])), threads=1)
    (row,) = profiling.profile(model, arrays, 2, 1).nodes
    pixels = 2 * 13 * 30
    assert row.op == "DEPTHWISE_CONV_2D+CONV_2D+ADD"
    assert row.macs == pixels * 48 * (9 + 48)
    assert row.bytes_moved == 4 * (2 * pixels * 48 + 9 * 48 + 48 + 48 * 48 + 48)
