"""Hostile `.tflite` files whose subgraphs run each other: see tflite_tables.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from tests.support.tflite_files import FileBuilder


def options(kind: str, **fields: int | str) -> Any:
    table = getattr(tfl, f"{kind}OptionsT")()
    for name, value in fields.items():
        setattr(table, name, value)
    return table


def branches(then: int, other: int) -> Any:
    return options("If", thenSubgraphIndex=then, elseSubgraphIndex=other)


def loop(condition: int, body: int) -> Any:
    return options("While", condSubgraphIndex=condition, bodySubgraphIndex=body)


def choosing(then: int, other: int, subgraphs: int = 2) -> FileBuilder:
    """(condition, x) -> IF -> y, beside subgraphs that negate."""
    b = FileBuilder()
    condition, x, y = b.tensor(np.bool_, ()), b.tensor(np.float32, (3,)), b.tensor(np.float32, (3,), name="choice")
    b.operator("IF", [condition, x], [y], branches(then, other))
    b.ends([condition, x], [y])
    for _ in range(subgraphs):
        inner = b.subgraph()
        given, result = inner.tensor(np.float32, (3,)), inner.tensor(np.float32, (3,))
        inner.operator("NEG", [given], [result])
        inner.ends([given], [result])
    return b


def nesting(depth: int, both: bool = False) -> FileBuilder:
    """Each subgraph runs the next one: in one branch, or in both."""
    b = choosing(1, 1 if both else depth + 1, 0)
    for level in range(1, depth + 2):
        inner = b.subgraph()
        given, result = inner.tensor(np.float32, (3,)), inner.tensor(np.float32, (3,))
        if level < depth:
            truth = inner.constant(True, np.bool_)
            inner.operator("IF", [truth, given], [result], branches(level + 1, level + 1 if both else depth + 1))
        else:
            inner.operator("NEG", [given], [result])
        inner.ends([given], [result])
    return b


def changed(b: FileBuilder, index: int = 0, **changes: Any) -> FileBuilder:
    """The file with fields of the operator of a subgraph replaced."""
    for name, value in changes.items():
        setattr(b.model.subgraphs[index].operators[0], name, value)
    return b


def subgraph(index: int, **changes: Any) -> FileBuilder:
    """The file with fields of a subgraph replaced."""
    b = choosing(1, 2)
    for name, value in changes.items():
        setattr(b.model.subgraphs[index], name, value)
    return b


def cyclic() -> FileBuilder:
    b = nesting(4)
    b.model.subgraphs[3].operators[0].builtinOptions.thenSubgraphIndex = 2
    return b


def of_another_dtype() -> FileBuilder:
    b = choosing(1, 2)
    b.model.subgraphs[2].tensors[0].type = tfl.TensorType.INT32
    return b


def cases() -> Iterator[tuple[str, FileBuilder, str]]:
    place = r"layer 'choice' \(operator 0, IF\): "
    for index in (-1, 3, 2**31 - 1, -(2**31)):
        yield f"subgraph {index}", choosing(index, 1), place + f"subgraph {index} is none of the 3"
    yield "subgraph that runs itself", choosing(0, 1), place + "subgraph 0 runs itself"
    cycle = "subgraph 1: .*subgraph 2: .*subgraph 3: .*subgraph 2 runs itself"
    yield "subgraphs in a circle", cyclic(), cycle
    for depth in (16, 1000):
        yield f"subgraphs {depth} deep", nesting(depth), "subgraphs are nested deeper than 16"
    for name, inputs, message in (
        ("without a condition", [], "there is no condition"),
        ("of too few operands", [0], "subgraph 1: 0 operands for its 1 inputs"),
        ("of too many operands", [0, 1, 1], "subgraph 1: 2 operands for its 1 inputs"),
        ("on a number", [1, 1], "not one truth value"),
        ("of an operand left out", [0, -1], "tensor -1 is none"),
    ):
        yield f"branch {name}", changed(choosing(1, 2), inputs=inputs), message
    yield "branch without outputs", changed(choosing(1, 2), outputs=[]), "0 outputs where its subgraph gives 1"
    yield "branch to its input", changed(choosing(1, 2), outputs=[1]), "output 't1' is a constant, an input"
    other = changed(choosing(1, 2), builtinOptions=loop(1, 2), builtinOptionsType=tfl.BuiltinOptions.WhileOptions)
    yield "branch of a loop's options", other, "options are WhileOptions, not IfOptions"
    yield "branch of another dtype", of_another_dtype(), "int32"
    yield "subgraph of no such output", subgraph(1, outputs=[9]), "subgraph 1: the subgraph's outputs: tensor 9"
    yield "subgraph without outputs", subgraph(1, outputs=[]), "branches give different"
    yield "subgraph of two outputs", subgraph(2, outputs=[1, 1]), "branches give different"
    yield "operand inside out of range", changed(choosing(1, 2), 1, inputs=[7]), "subgraph 1: .*tensor 7 is none"
    yield "operator inside out of range", changed(choosing(1, 2), 1, opcodeIndex=7), "operator code 7 is none"


CASES = {name: (b.pack(), message) for name, b, message in cases()}
