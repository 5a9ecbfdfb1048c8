"""Files whose graphs run each other, or remember, in ways that cannot be: see tables.py."""

from __future__ import annotations

from typing import Any

from schema.generated import xnn_generated as fb
from tests.corpus.objects import BOOL, constant, node, one_node, relu_graph, sealed, stream, tensor


def branch(**changes: Any) -> fb.GraphT:
    """A graph that a node may run: x -> RELU -> y, of any shape."""
    return relu_graph(**({"tensors": [tensor(shape=[-1, 3]), tensor()]} | changes))


def choosing(then: int, other: int, operand: int = 1, result: int = 2) -> fb.GraphT:
    """(condition, x) -> IF -> y, by graphs of these indices."""
    attributes = fb.IfAttributesT(thenBranch=then, elseBranch=other)
    return fb.GraphT(
        tensors=[tensor(shape=[], dtype=BOOL), tensor(shape=[2, 3]), tensor()],
        nodes=[node(fb.OpCode.IF, [0, operand], [result], attributes, name="choice")],
        inputs=[0, 1],
        inputNames=["condition", "x"],
        outputs=[2],
        outputNames=["y"],
    )


def looping(condition: int, body: int) -> fb.GraphT:
    attributes = fb.WhileAttributesT(condition=condition, body=body)
    return relu_graph(nodes=[node(fb.OpCode.WHILE, attributes=attributes, name="loop")])


def inside(then: int, other: int) -> fb.GraphT:
    """x -> IF -> y, where another node may run it. The condition is stored."""
    attributes = fb.IfAttributesT(thenBranch=then, elseBranch=other)
    truth = tensor(shape=[], dtype=BOOL, constant=constant(dtype=BOOL, values=stream(1)))
    nodes = [node(fb.OpCode.IF, [2, 0], [1], attributes, name="choice")]
    return branch(tensors=[tensor(shape=[-1, 3]), tensor(), truth], nodes=nodes)


def nesting(depth: int) -> bytes:
    """Graphs, each of which runs the next but one, and a branch."""
    graphs = [choosing(1, 2)]
    for level in range(1, depth):
        graphs += [inside(2 * level + 1, 2 * level + 2), branch()]
    return sealed(*graphs, branch(), branch())


def remembering(state: Any, **changes: Any) -> bytes:
    stored = [tensor(shape=[2, 3], constant=constant()), tensor(shape=[6], constant=constant())]
    return sealed(relu_graph(tensors=[tensor(shape=[2, 3]), tensor(), *stored], state=state, **changes))


CASES: dict[str, tuple[bytes, str]] = {
    "graph-index-minus-1": (
        sealed(choosing(2**32 - 1, 1), branch()),
        r"graph 0, node 0 \(IF 'choice'\): then_branch: graph 4294967295 is none of the 2",
    ),
    "graph-index-out-of-range": (sealed(choosing(1, 2), branch()), "else_branch: graph 2 is none of the 2"),
    "graph-runs-itself": (sealed(choosing(0, 1), branch()), "then_branch: graph 0 runs itself"),
    "graph-cycle": (
        sealed(choosing(1, 2), inside(3, 4), branch(), inside(1, 5), branch(), branch()),
        "graph 3, node 0 .*then_branch: graph 1 runs itself",
    ),
    "graph-cycle-of-others": (
        sealed(relu_graph(), inside(2, 3), inside(1, 4), branch(), branch()),
        "graph 2, node 0 .*then_branch: graph 1 runs itself",
    ),
    "graph-named-twice": (sealed(choosing(1, 1), branch()), "else_branch: graph 1 is run by another node"),
    "graph-nested-17-deep": (nesting(16), "nested deeper than 16"),
    "graph-nested-1000-deep": (nesting(1000), "nested deeper than 16"),
    "graph-of-other-operands": (sealed(choosing(1, 2), branch(), choosing(3, 4), branch(), branch()), "1 and 2 inputs"),
    "graph-of-another-dtype": (
        sealed(
            choosing(1, 2),
            branch(),
            branch(tensors=[tensor(shape=[2, 3], dtype=fb.DType.FLOAT16), tensor(dtype=fb.DType.FLOAT16)]),
        ),
        "input 0 is float32 in one and float16 in the other",
    ),
    "graph-of-another-shape": (
        sealed(choosing(1, 2), branch(), branch(tensors=[tensor(shape=[2, 4]), tensor()])),
        r"'choice'.*operand 0 has shape \(2, 3\), not \(2, 4\)",
    ),
    "graph-condition-is-a-number": (sealed(looping(1, 2), branch(), branch()), "WHILE 'loop'.*not one truth value"),
    "graph-body-itself": (sealed(looping(1, 0), branch()), "body: graph 0 runs itself"),
    "graph-without-attributes": (one_node(fb.OpCode.IF, [0, 0]), "IF.*attributes None, not IfAttributes"),
    "graph-with-a-state": (
        sealed(
            choosing(1, 2),
            branch(),
            branch(tensors=[tensor(shape=[2, 3]), tensor(), tensor(shape=[2, 3], constant=constant())], state=[2]),
        ),
        "a graph that nodes run has no state",
    ),
    "state-index-out-of-range": (remembering([9]), "graph 0, state: tensor 9"),
    "state-not-constant": (remembering([0]), "state 'x': its initial value is no constant"),
    "state-of-another-shape": (remembering([3]), r"its initial value has shape \(6,\), not \(2, 3\)"),
    "states-too-many": (remembering([2, 2]), "2 states of 1 inputs and 1 outputs"),
}
