"""IF(constant, ...) -> the nodes of the branch that is taken; a WHILE whose condition is constantly false -> its
operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from converter.constants import value_of
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import DTypeAttributes
from schema.ops.calls import truth


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("IF", "WHILE"):
        if node.op == "IF":
            condition = value_of(node.inputs[0])
            if condition is None:
                continue
            taken = "then_branch" if truth(condition) else "else_branch"
            rewriter.replace(node, _inlined(node, node.subgraphs[taken], node.inputs[1:]))
            changes.append(f"{layer(node)}: the condition is constant, {taken} is taken")
        else:
            condition = value_of(node.attributes.condition.outputs[0])
            if condition is not None and not truth(condition):
                copies = [_copy(node, source, output) for source, output in zip(node.inputs, node.outputs, strict=True)]
                rewriter.replace(node, copies)
                changes.append(f"{layer(node)}: the loop never runs")
    rewriter.commit()
    return changes


def _inlined(node: Node, branch: Graph, operands: Sequence[Tensor | None]) -> list[Node]:
    """The branch's nodes, on the node's operands and with its outputs."""
    tensors: dict[Tensor | None, Tensor | None] = {}
    before, behind = [], []
    for inner, operand in zip(branch.inputs, operands, strict=True):
        assert operand is not None
        if inner.quantization == operand.quantization:
            tensors[inner] = operand
        else:  # the same integers stand for other numbers
            before.append(_copy(node, operand, inner))
    computed = {tensor for inner in branch.nodes for tensor in inner.outputs}
    for inner, output in zip(branch.outputs, node.outputs, strict=True):
        if inner in computed and inner not in tensors and inner.quantization == output.quantization:
            tensors[inner] = output
        else:  # given on as it is, a constant, or twice
            behind.append((inner, output))
    for nested in branch.nodes:
        nested.inputs = [tensors.get(tensor, tensor) for tensor in nested.inputs]
        nested.outputs = [tensors.get(tensor) or tensor for tensor in nested.outputs]
    return [*before, *branch.nodes, *(_copy(node, tensors.get(source, source), output) for source, output in behind)]


def _copy(node: Node, source: Tensor | None, output: Tensor) -> Node:
    return Node("CAST", [source], [output], DTypeAttributes(output.dtype), node.name)
