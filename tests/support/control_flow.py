"""Small graphs that branch, loop and remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema import Graph, Node, Tensor
from schema.graph import Shape
from schema.ops.attributes import ArithmeticAttributes, AxisAttributes, IfAttributes, WhileAttributes

FLOAT, INT, BOOL = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.bool_)


def graph(nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], **fields: Any) -> Graph:
    """Inputs and outputs are named x0, x1, ... and y0, y1, ..."""
    names = [[f"{letter}{i}" for i in range(len(there))] for letter, there in (("x", inputs), ("y", outputs))]
    return Graph(list(nodes), list(inputs), names[0], list(outputs), names[1], **fields)


def constant(value: Any, dtype: Any = FLOAT) -> Tensor:
    return Tensor.from_array("c", np.asarray(value, dtype))


def binary(op: str, a: Tensor, b: Tensor, name: str = "") -> tuple[Node, Tensor]:
    out = Tensor("out", BOOL if op in ("LESS", "GREATER") else a.dtype)
    attributes = None if out.dtype == BOOL else ArithmeticAttributes()
    return Node(op, [a, b], [out], attributes, name or op.lower()), out


def applied(op: str, value: Any, shape: Shape | None = (None,), dtype: Any = FLOAT) -> Graph:
    """x -> op(x, value)."""
    x = Tensor("x", dtype, shape)
    node, out = binary(op, x, constant(value, dtype))
    return graph([node], [x], [out])


def branching(shape: Shape | None = (None,)) -> Graph:
    """(condition, x) -> x + 1 if the condition holds, x * 3 otherwise."""
    condition, x, y = Tensor("c", BOOL, ()), Tensor("x", FLOAT, shape), Tensor("y", FLOAT)
    attributes = IfAttributes(applied("ADD", 1.0, shape), applied("MUL", 3.0, shape))
    return graph([Node("IF", [condition, x], [y], attributes, "choice")], [condition, x], [y])


def until(count: int, shape: Shape | None = (None,)) -> Graph:
    """(i, x) -> i < count."""
    i, x = Tensor("i", INT, ()), Tensor("x", FLOAT, shape)
    node, less = binary("LESS", i, constant(count, INT))
    return graph([node], [i, x], [less])


def doubling(shape: Shape | None = (None,)) -> Graph:
    """(i, x) -> (i + 1, x + x)."""
    i, x = Tensor("i", INT, ()), Tensor("x", FLOAT, shape)
    step, following = binary("ADD", i, constant(1, INT))
    twice, result = binary("ADD", x, x)
    return graph([step, twice], [i, x], [following, result])


def growing() -> Graph:
    """(i, x) -> (i + 1, x and itself behind it)."""
    i, x, joined = Tensor("i", INT, ()), Tensor("x", FLOAT, (None,)), Tensor("joined", FLOAT)
    step, following = binary("ADD", i, constant(1, INT))
    join = Node("CONCATENATION", [x, x], [joined], AxisAttributes(0), "join")
    return graph([step, join], [i, x], [following, joined])


def looping(count: int = 5, body: Graph | None = None, shape: Shape | None = (None,)) -> Graph:
    """(i, x) -> the body (doubling, by default) while i < count."""
    i, x, last, y = Tensor("i", INT, ()), Tensor("x", FLOAT, shape), Tensor("last", INT), Tensor("y", FLOAT)
    attributes = WhileAttributes(until(count, shape), body or doubling(shape))
    return graph([Node("WHILE", [i, x], [last, y], attributes, "loop")], [i, x], [last, y])


def nested(depth: int) -> Graph:
    """x -> x + 1 in as many branches, one inside of the other, as `depth`."""
    inner = applied("ADD", 1.0)
    for _ in range(depth):
        x, y, truth = Tensor("x", FLOAT, (None,)), Tensor("y", FLOAT), constant(True, BOOL)
        node = Node("IF", [truth, x], [y], IfAttributes(inner, applied("MUL", 3.0)), "choice")
        inner = graph([node], [x], [y])
    return inner


def counter(start: float = 0.0) -> Graph:
    """x -> x plus all x before; the sum is the state."""
    x, total = Tensor("x", FLOAT, (2,)), Tensor("total", FLOAT, (2,))
    node, following = binary("ADD", total, x)
    copy, y = binary("ADD", following, constant(0.0))
    result = graph([node, copy], [x, total], [y, following], state=[constant([start, start])])
    result.input_names, result.output_names = ["x", "total"], ["y", "next"]
    return result
