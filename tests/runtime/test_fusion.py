"""Convolutions with the addition after them, or the depthwise convolution before, as one kernel."""

import os

import numpy as np
import pytest

import runtime
import schema
from runtime import fusion, profiling
from runtime.kernels.table import find_kernel
from runtime.lowering import line_chain
from runtime.steps import NativeStep
from schema import Model, Node, Tensor, evaluate
from schema.ops.attributes import ArithmeticAttributes, Conv2DAttributes
from tests.support.engine import compare, graph_of, run
from tests.support.guarded import run_guarded_graph
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


def convolution(rng, input_, out, kernel=1, op="CONV_2D", **fields):
    """(node, output): of random weights, whose results are not larger than its inputs."""
    channels = input_.shape[-1]
    shape = (1, kernel, kernel, out) if op == "DEPTHWISE_CONV_2D" else (out, kernel, kernel, channels)
    weights = Tensor.from_array("w", rng.normal(0, 1, shape).astype(np.float32) / kernel)
    bias = Tensor.from_array("b", rng.normal(0, 1, out).astype(np.float32))
    stride = fields.get("stride_h", 1)
    size = [-(-n // stride) for n in input_.shape[1:3]]
    y = Tensor("y", np.float32, (input_.shape[0], *size, out))
    return Node(op, [input_, weights, bias], [y], Conv2DAttributes(padding="SAME", **fields)), y


def chain(rng, size, batch, first, stages, residual=False):
    """(nodes, inputs, output, arrays): a first convolution of (channels in, channels out, kernel, stride), then
    depthwise ones of a stride, each followed by one of 1x1 to so many channels.
    """
    channels, out, kernel, stride = first
    x = Tensor("x", np.float32, (batch, *size, channels))
    node, y = convolution(rng, x, out, kernel, stride_h=stride, stride_w=stride, activation="RELU6")
    nodes = [node]
    for stride, out in stages:
        node, y = convolution(rng, y, y.shape[-1], 3, "DEPTHWISE_CONV_2D", stride_h=stride, stride_w=stride)
        nodes.append(node)
        node, y = convolution(rng, y, out)
        nodes.append(node)
    if residual:
        total = Tensor("sum", np.float32, y.shape)
        nodes.append(Node("ADD", [x, y], [total], ArithmeticAttributes(activation="RELU")))
        y = total
    return nodes, [x], y, [rng.normal(0, 1, x.shape).astype(np.float32)]


@pytest.fixture
def small_lines(monkeypatch):
    """Chains of small tensors, a few lines of them at a time."""
    monkeypatch.setattr(fusion, "LARGE", 0)
    monkeypatch.setattr(line_chain, "ROWS", 20)
    monkeypatch.setattr(line_chain, "MOST_ROWS", 30)


@pytest.mark.skipif(find_kernel("line_chain", "float32") is None, reason="this CPU has no kernel for it")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [(23, 9), (8, 40), (1, 1), (50, 3)])
@pytest.mark.parametrize(
    ("first", "stages"),
    [
        ((5, 40, 1, 1), [(1, 16)]),
        ((16, 17, 1, 1), [(2, 33)]),
        ((3, 32, 3, 2), [(1, 16)]),
        ((3, 16, 3, 2), [(1, 40), (2, 5)]),
        ((4, 20, 1, 1), [(2, 32), (2, 64)]),
        ((2, 16, 5, 1), [(1, 16), (1, 24)]),
    ],
)
def test_convolutions_follow_each_other_line_by_line(size, first, stages, threads, rng, small_lines):
    nodes, inputs, y, arrays = chain(rng, size, 2, first, stages)
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=threads)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]


@pytest.mark.skipif(find_kernel("line_chain", "float32") is None, reason="this CPU has no kernel for it")
def test_chains_with_residuals_and_their_ends(rng, small_lines):
    nodes, inputs, y, arrays = chain(rng, (13, 20), 2, (32, 48, 1, 1), [(1, 32)], residual=True)
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=2)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]
    nodes, inputs, y, arrays = chain(rng, (13, 20), 1, (8, 16, 1, 1), [(1, 16), (1, 16), (1, 16), (1, 16)])
    compare(nodes, inputs, [y], arrays, rtol=1e-5, threads=2)
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D", "CONV_2D"]  # two depthwise ones in each
    middle = nodes[1].inputs[0]
    compare(nodes, inputs, [y, middle], arrays, rtol=1e-5)
    assert kernels(nodes, inputs, [y, middle], arrays) == ["CONV_2D", "CONV_2D", "CONV_2D"]  # wanted by somebody else


@pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect")
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "start"])
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: chain(rng, (12, 10), 2, (3, 32, 3, 2), [(1, 17), (2, 33)]),
        lambda rng: chain(rng, (12, 10), 2, (5, 17, 1, 1), [(2, 16)]),
        lambda rng: chain(rng, (12, 10), 2, (16, 33, 1, 1), [(1, 16)], residual=True),
        lambda rng: separable(rng, 17, 33, (9, 5)),
        lambda rng: separable(rng, 32, 16, (9, 3), stride_h=2, stride_w=2),
    ],
)
def test_no_memory_outside_of_the_operands_is_touched(make, at_end, rng, small_lines):
    nodes, inputs, y, arrays = make(rng)
    graph = graph_of(nodes, inputs, [y])
    (result,), (expected,) = run_guarded_graph(graph, arrays, at_end), evaluate.run(graph, arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.skipif(find_kernel("line_chain", "float32") is None, reason="this CPU has no kernel for it")
def test_only_large_tensors_are_made_line_by_line(rng):
    nodes, inputs, y, arrays = chain(rng, (13, 20), 1, (8, 16, 1, 1), [(1, 16)])
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D", "CONV_2D"]
    nodes, inputs, y, arrays = chain(rng, (80, 80), 1, (3, 24, 1, 1), [(1, 16)])
    assert kernels(nodes, inputs, [y], arrays) == ["CONV_2D"]
    compare(nodes, inputs, [y], arrays, rtol=1e-5)


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


def test_packed_weights_of_many_plans(rng):
    """Fused nodes are made for each plan; what was packed for one that is gone must not serve another."""
    x = y = Tensor("x", np.float32, (1, None, 9, 32))
    nodes = []
    for _ in range(4):
        _, _, constants, made = float_operands(rng, (1,), (32, 1, 1, 32), 32, True)
        total = Tensor("sum", np.float32)
        nodes.append(Node("CONV_2D", [y, *constants], [made], Conv2DAttributes()))
        nodes.append(Node("ADD", [made, y], [total], ArithmeticAttributes()))
        y = total
    graph = graph_of(nodes, [x], [y])
    model = runtime.load(schema.write(Model([graph])), threads=1)
    for height in range(1, 40):
        array = rng.standard_normal((1, height, 9, 32)).astype(np.float32)
        (expected,) = schema.evaluate.run(graph, [array])
        np.testing.assert_allclose(model(array), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
