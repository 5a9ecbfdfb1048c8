"""IF(c, constant) -> IF(c) with the constant inside; the same of what stays as it is through a WHILE, and operands that
nothing inside reads go.
"""

from __future__ import annotations

from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("IF", "WHILE"):
        count = (_fold_if if node.op == "IF" else _fold_while)(rewriter, node)
        if count:
            changes.append(
                f"{layer(node)}: {count} operand{'s' * (count > 1)} moved into its graphs, or not needed there"
            )
    rewriter.commit()
    return changes


def _fold_if(rewriter: Rewriter, node: Node) -> int:
    branches = list(node.subgraphs.values())
    operands = node.inputs[1:]
    gone = [
        i
        for i, operand in enumerate(operands)
        if operand is not None
        and (operand.is_constant or not any(_is_used(branch, branch.inputs[i]) for branch in branches))
    ]
    for i in gone:
        for branch in branches:
            _put_inside(branch, i, operands[i])
    for branch in branches:
        _drop_inputs(branch, gone)
    if gone:
        rewriter.rewrite(node, inputs=[node.inputs[0], *_without(operands, gone)])
    return len(gone)


def _fold_while(rewriter: Rewriter, node: Node) -> int:
    condition, body = node.attributes.condition, node.attributes.body
    gone = []
    for i, (operand, output) in enumerate(zip(node.inputs, node.outputs, strict=True)):
        if body.outputs[i] is not body.inputs[i] or rewriter.is_output(output) or operand is None:
            continue
        if operand.quantization == output.quantization and (
            operand.is_constant or not (_is_used(body, body.inputs[i], i) or _is_used(condition, condition.inputs[i]))
        ):
            gone.append(i)
    if not gone or len(gone) == len(node.inputs):
        return 0
    operands, outputs = list(node.inputs), list(node.outputs)
    body.outputs, body.output_names = _without(body.outputs, gone), _without(body.output_names, gone)
    for graph in (condition, body):
        for i in gone:
            _put_inside(graph, i, operands[i])
        _drop_inputs(graph, gone)
    node.outputs = _without(outputs, gone)
    rewriter.rewrite(node, inputs=_without(operands, gone))
    for i in gone:
        source = operands[i]
        assert source is not None
        if rewriter.consumers(outputs[i]):
            rewriter.replace_uses(outputs[i], source)
    return len(gone)


def _is_used(graph: Graph, tensor: Tensor, besides: int = -1) -> bool:
    """Whether a node reads the tensor, or it is an output, other than number `besides`."""
    outputs = (output for i, output in enumerate(graph.outputs) if i != besides)
    return any(tensor in node.inputs for node in graph.nodes) or any(tensor is output for output in outputs)


def _put_inside(graph: Graph, index: int, operand: Tensor | None) -> None:
    """Let the graph read a constant where it reads an input."""
    if operand is None or not operand.is_constant:
        return
    old = graph.inputs[index]
    new = Tensor(operand.name, old.dtype, operand.shape, old.quantization, operand.constant)
    for node in graph.nodes:
        node.inputs = [new if tensor is old else tensor for tensor in node.inputs]
    graph.outputs = [new if tensor is old else tensor for tensor in graph.outputs]


def _drop_inputs(graph: Graph, gone: list[int]) -> None:
    graph.inputs, graph.input_names = _without(graph.inputs, gone), _without(graph.input_names, gone)


def _without(items: list, gone: list[int]) -> list:
    return [item for i, item in enumerate(items) if i not in gone]
