"""Tensors that are only made to be concatenated are written into the result."""

import numpy as np
import pytest

from runtime.steps import NativeStep
from runtime.storage import Storage
from schema import Node, Tensor, inference
from schema.ops.attributes import AxisAttributes, Conv2DAttributes
from tests.support.engine import compare, graph_of, run
from tests.support.operands import float_operands, int8_operands


def convolutions(make, rng, outs, kernel=3):
    """(nodes, input, outputs, array): convolutions of one input."""
    x = input_ = None
    nodes = []
    for out in outs:
        array, tensor, constants, y = make(rng, (1, 6, 7, 8), (out, kernel, kernel, 8), out, True)
        x, input_ = (array, tensor) if x is None else (x, input_)
        nodes.append(Node("CONV_2D", [input_, *constants], [y], Conv2DAttributes(padding="SAME")))
    return nodes, input_, [node.outputs[0] for node in nodes], x


@pytest.mark.parametrize("make", [float_operands, int8_operands])
@pytest.mark.parametrize("outs", [(16, 24, 3), (1, 1), (33, 64)])
def test_convolutions_write_where_their_concatenation_is(make, outs, rng):
    nodes, input_, parts, x = convolutions(make, rng, outs)
    whole = Tensor("whole", parts[0].dtype, None, parts[0].quantization)
    nodes.append(Node("CONCATENATION", parts, [whole], AxisAttributes(-1)))
    rtol = 1e-5 if make is float_operands else 0
    compare(nodes, [input_], [whole], [x], rtol=rtol, threads=2)
    steps = run(graph_of(nodes, [input_], [whole]), [x])[1]
    assert [node.op for step in steps if isinstance(step, NativeStep) for node in step.nodes] == ["CONV_2D"] * len(outs)


def sections(nodes, inputs, outputs):
    graph = graph_of(nodes, inputs, outputs)
    return Storage(inputs, nodes, outputs, inference.infer(graph).types).sections


def test_what_others_read_is_copied(rng):
    nodes, input_, parts, x = convolutions(float_operands, rng, (16, 24))
    whole = Tensor("whole", np.float32)
    nodes.append(Node("CONCATENATION", parts, [whole], AxisAttributes(-1)))
    assert len(sections(nodes, [input_], [whole])) == 2
    assert not sections(nodes, [input_], [whole, parts[0]])
    compare(nodes, [input_], [whole, parts[0]], [x], rtol=1e-5)
    twice = [*nodes[:2], Node("CONCATENATION", [parts[0], parts[0]], [whole], AxisAttributes(-1))]
    assert not sections(twice, [input_], [whole])
    over_lines = [*convolutions(float_operands, rng, (16, 16))[0]]
    ends = [node.outputs[0] for node in over_lines]
    over_lines.append(Node("CONCATENATION", ends, [whole], AxisAttributes(1)))
    assert not sections(over_lines, [over_lines[0].inputs[0], over_lines[1].inputs[0]], [whole])
