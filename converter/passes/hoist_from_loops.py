"""WHILE(..., x): ... FULLY_CONNECTED(GATHER(x, step), w) -> WHILE(..., FULLY_CONNECTED(x, w)): ... GATHER(., step).

What a recurrent layer makes of its inputs does not depend on its state: one product for all time steps, before the
loop. A bias goes with it, also one that is added behind the sum with the state's product, as an addition of its own:
quantized, the product is rounded to a range that a forget gate's 1 does not widen. Runs behind the rewrites of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from converter.constants import constant, is_float, operand
from converter.linear import bias_of, bias_value, foldable
from converter.rewriter import layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import ArithmeticAttributes


def run(graph: Graph) -> list[str]:
    changes = []
    for loop in [node for node in graph.nodes if node.op == "WHILE"]:
        for slot in range(len(loop.inputs)):
            product = _product(graph, loop, slot)
            if product is not None:
                _hoist(graph, loop, slot, *product)
                changes.append(f"{layer(loop)}: {product[1].inputs[1].shape[1]} inputs of all steps multiplied at once")
    return changes


def _product(graph: Graph, loop: Node, slot: int) -> tuple[Node, Node] | None:
    """(GATHER, FULLY_CONNECTED) in the body that alone read what is carried there and never changes."""
    body, condition = loop.attributes.body, loop.attributes.condition
    x, after = body.inputs[slot], loop.outputs[slot]
    unchanged = body.outputs[slot] is x and body.outputs.count(x) == 1
    if not unchanged or _readers(condition, condition.inputs[slot]) or _readers(graph, after):
        return None
    gather = _only_reader(body, x, besides=1)
    if gather is None or gather.op != "GATHER" or gather.inputs[0] is not x or x.shape is None or not is_float(x):
        return None
    axes, (_, step) = gather.attributes, gather.inputs
    linear = _only_reader(body, gather.outputs[0])
    if axes.axis or axes.batch_dims or step is None or step.shape != () or linear is None:
        return None
    weights = linear.inputs[1] if linear.op == "FULLY_CONNECTED" else None
    if weights is None or linear.inputs[0] is not gather.outputs[0] or not foldable(linear) or len(x.shape) != 3:
        return None
    return (gather, linear) if len(_readers(body, weights)) == 1 and weights not in body.outputs else None


def _hoist(graph: Graph, loop: Node, slot: int, gather: Node, linear: Node) -> None:
    body, condition = loop.attributes.body, loop.attributes.condition
    bias = _taken_bias(body, linear)
    x, weights = loop.inputs[slot], linear.inputs[1]
    assert x is not None and weights is not None and weights.shape is not None

    def projected(old: Tensor) -> Tensor:
        shape = None if old.shape is None else (*old.shape[:-1], weights.shape[0])  # type: ignore[index]
        return Tensor(f"{old.name}/projected", old.dtype, shape)

    result = projected(x)
    attributes = replace(linear.attributes, keep_num_dims=True)
    before = [Node("FULLY_CONNECTED", [x, *linear.inputs[1:]], [result], attributes, layer(loop))]
    if bias is not None:
        addend = constant(f"{result.name}/bias", bias.astype(np.float32))
        product, result = result, replace(result, name=f"{result.name}/biased")
        before.append(Node("ADD", [product, addend], [result], ArithmeticAttributes(), layer(loop)))
    at = graph.nodes.index(loop)
    graph.nodes[at:at] = before
    loop.inputs[slot], loop.outputs[slot] = result, projected(loop.outputs[slot])
    condition.inputs[slot] = projected(condition.inputs[slot])
    body.inputs[slot] = body.outputs[slot] = projected(body.inputs[slot])
    gather.inputs[0], gather.outputs = body.inputs[slot], linear.outputs
    body.nodes.remove(linear)


def _taken_bias(body: Graph, linear: Node) -> np.ndarray | None:
    """Its bias, taken off it, and c of ADD(ADD(linear, y), c) -> ADD(linear, y), a constant for each channel. None
    where nothing is added, or an activation follows at once.
    """
    if linear.attributes.activation != "NONE":
        return None
    own = None if bias_of(linear) is None else bias_value(linear)
    linear.inputs[2:] = []
    inner = _only_reader(body, linear.outputs[0])
    outer = None if inner is None else _only_reader(body, inner.outputs[0])
    if inner is None or outer is None or {inner.op, outer.op} != {"ADD"}:
        return own
    found = operand(outer)
    if found is None or found[0] is not inner.outputs[0] or inner.attributes.activation != "NONE":
        return own
    channels, (addend,) = linear.inputs[1].shape[0], found[1:]  # type: ignore[union-attr, index]
    if addend.shape != (channels,) or any(t is None or t.shape != linear.outputs[0].shape for t in inner.inputs):
        return own
    outer.inputs = inner.inputs
    body.nodes.remove(inner)
    return addend if own is None else own + addend


def _readers(graph: Graph, tensor: Tensor) -> list[Node | None]:
    """Nodes that read a tensor, as often as they do; None for each output of the graph that it is."""
    nodes = [node for node in graph.nodes for read in node.inputs if read is tensor]
    return [*nodes, *(None for output in graph.outputs if output is tensor)]


def _only_reader(graph: Graph, tensor: Tensor, besides: int = 0) -> Node | None:
    """besides: of how many of the graph's outputs it is."""
    readers: Sequence[Node | None] = _readers(graph, tensor)
    nodes = [node for node in readers if node is not None]
    return nodes[0] if len(nodes) == 1 and len(readers) == 1 + besides else None
