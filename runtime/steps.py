"""What a plan does, one after the other: native calls of consecutive nodes, and nodes by their references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from runtime.lowering.base import Call
from runtime.native.executor import NativePlan
from schema import ops
from schema.graph import Node, TensorType


class Graphs(Protocol):
    """The graphs that a node runs."""

    def run(self, arrays: Sequence[np.ndarray | None], threads: int | None) -> list[np.ndarray]: ...


@dataclass
class NativeStep:
    """Consecutive nodes with kernels, run by one native call."""

    nodes: list[Node] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # calls of each node
    plan: NativePlan | None = None


@dataclass
class HostStep:
    """One node by its reference, or one that runs graphs (calls), on views of the arena."""

    node: Node
    calls: Graphs | None = None
    inputs: list[np.ndarray | None] = field(default_factory=list)
    outputs: list[np.ndarray] = field(default_factory=list)
    input_types: list[TensorType | None] = field(default_factory=list)
    output_types: list[TensorType] = field(default_factory=list)

    def run(self, threads: int | None) -> None:
        if self.calls is None:
            op, attributes = ops.get(self.node.op), self.node.attributes
            results = ops.run(op, attributes, self.inputs, self.input_types, self.output_types)
        else:
            results = self.calls.run(self.inputs, threads)
        for target, result in zip(self.outputs, results, strict=True):
            target[...] = result


@dataclass(frozen=True)
class Part:
    """One node of a plan, to be run by itself: for profiling."""

    node: Node
    kernel: str  # names of its kernels; "reference" or "graphs" for a host step
    native: bool
    run: Callable[[int | None], object]
