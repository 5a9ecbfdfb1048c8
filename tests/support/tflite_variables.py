"""`.tflite` files with variables."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from tests.corpus.tflite_graphs import options
from tests.support.tflite_files import FileBuilder


def resource(b: FileBuilder) -> int:
    return b.tensor(np.float32, (), type=tfl.TensorType.RESOURCE)


def variable(b: FileBuilder, name: str = "v") -> int:
    handle = resource(b)
    b.operator("VAR_HANDLE", [], [handle], options("VarHandle", container="", sharedName=name))
    return handle


def counting(initialised: bool = True, assigned: bool = True) -> FileBuilder:
    """x -> v, which is v + x from then on."""
    b = FileBuilder()
    x, y, total = (b.tensor(np.float32, (2,), name=name) for name in ("x", "y", "total"))
    if initialised:
        inner = b.subgraph()
        handle = variable(inner)
        inner.operator("ASSIGN_VARIABLE", [handle, inner.constant([1, 2], np.float32)], [])
        inner.ends([], [])
        b.operator("CALL_ONCE", [], [], options("CallOnce", initSubgraphIndex=1))
    handle = variable(b)
    b.operator("READ_VARIABLE", [handle], [y])
    b.operator("ADD", [y, x], [total], options("Add"))
    if assigned:
        b.operator("ASSIGN_VARIABLE", [handle, total], [])
    b.ends([x], [y, total])
    return b
