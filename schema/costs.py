"""What nodes cost: multiply-accumulates, and bytes of what they read and write. Shared by the converter's diagnosis and
the engine's profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schema import ops
from schema.graph import Node, Tensor, TensorType
from schema.inference import size_in_bytes

Types = Mapping[Tensor, TensorType]

VIEW_OPS = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
"""Ops whose output is the first input's bytes under another shape: they move nothing."""


@dataclass(frozen=True)
class Cost:
    """macs: multiply-accumulates. weight_bytes: what constants take in the file. traffic: bytes of computed tensors,
    each counted where it is written and wherever it is read.
    """

    macs: int = 0
    weight_bytes: int = 0
    traffic: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.macs + other.macs, self.weight_bytes + other.weight_bytes, self.traffic + other.traffic)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.macs - other.macs, self.weight_bytes - other.weight_bytes, self.traffic - other.traffic)


def macs(node: Node, types: Types) -> int:
    """Multiply-accumulates of one run; what dimensions that are not known would multiply is not counted."""
    inputs = [None if tensor is None else types[tensor] for tensor in node.inputs]
    return ops.get(node.op).macs(node.attributes, inputs, [types[tensor] for tensor in node.outputs])


def bytes_of(tensors: Iterable[Tensor | None], types: Types) -> int:
    """Bytes of these tensors, each once."""
    return sum(size_in_bytes(types[tensor]) for tensor in dict.fromkeys(tensors) if tensor is not None)


def traffic(node: Node, types: Types) -> int:
    """Bytes of the computed tensors that a node reads and writes."""
    if node.op in VIEW_OPS:
        return 0
    return bytes_of([t for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant], types)
