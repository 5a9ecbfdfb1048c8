"""Places where a rewrite would be right, each with what it would save: those that pay are rewritten, the others are
told in the diagnosis with the reason.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from converter.costs import compute_cost, file_bytes, sample_types
from converter.rewriter import Rewriter
from schema.costs import Cost
from schema.graph import Graph, Node, Tensor, TensorType

BYTE_IN_MACS = 8
"""Multiply-accumulates that count as much as a byte of memory traffic: the order of magnitude of x86 cores, whose
memory gives about 1e10 bytes a second, and whose vector units do about 1e11 float32 multiply-accumulates.
"""
INTEGERS = "the file's integers would change"


@dataclass(frozen=True)
class Candidate:
    """where: names of layers. against: why it is not done, "" where it pays. apply: does it and tells what."""

    where: str
    saving: Cost
    against: str
    apply: Callable[[], str] = str


class Survey:
    """What finders look at: the graph's rewriter, and costs of its nodes for one sample."""

    def __init__(self, graph: Graph):
        self.rewriter = Rewriter(graph)
        self._graph = graph

    @cached_property
    def types(self) -> Mapping[Tensor, TensorType]:
        """Of the tensors that were there before anything was rewritten."""
        return sample_types(self._graph)

    def knows(self, *nodes: Node) -> bool:
        """Whether the nodes are as they were, and their results of known sizes."""
        tensors = [t for node in nodes for t in (*node.inputs, *node.outputs) if t is not None]
        return all(t.is_constant or (t in self.types and self.types[t].is_static) for t in tensors)

    def compute(self, *nodes: Node, types: Mapping[Tensor, TensorType] | None = None) -> Cost:
        """What running these nodes costs, without their weights' bytes. types: of tensors that are not in the graph."""
        constants = {t: t.type for node in nodes for t in node.inputs if t is not None and t.is_constant}
        known = ChainMap(types or {}, constants, self.types)  # type: ignore[arg-type]
        return sum((compute_cost(node, known) for node in nodes), Cost())

    def cost(self, *nodes: Node, types: Mapping[Tensor, TensorType] | None = None) -> Cost:
        """What these nodes cost together, weights in the file included but those that other nodes read too: these stay
        whatever becomes of the nodes.
        """
        constants = dict.fromkeys(t for node in nodes for t in node.inputs if t is not None and t.is_constant)
        own = [t for t in constants if all(reader in nodes for reader in self.rewriter.consumers(t))]
        return self.compute(*nodes, types=types) + Cost(weight_bytes=sum(map(file_bytes, own)))


Finder = Callable[[Survey], Iterator[Candidate]]


def rewrite(graph: Graph, find: Finder) -> list[str]:
    """Apply what pays; a line for each."""
    survey, changes = Survey(graph), []
    for candidate in find(survey):
        if not candidate.against:
            changes.append(candidate.apply())
    survey.rewriter.commit()
    return changes


def left_over(graph: Graph, find: Finder) -> list[Candidate]:
    """What does not pay, in a graph where what pays is done."""
    return [candidate for candidate in find(Survey(graph)) if candidate.against]


def objection(saving: Cost) -> str:
    """Why a rewrite with this saving does not pay: "" unless it stores more, computes longer, or changes nothing."""
    if saving.weight_bytes < 0:
        return f"{-saving.weight_bytes} bytes more would be stored"
    time = saving.macs + BYTE_IN_MACS * saving.traffic
    if time < 0 or (time == 0 and saving.macs and not saving.weight_bytes):
        more, what = (
            (-saving.macs, "multiply-accumulates") if saving.macs < 0 else (-saving.traffic, "bytes of traffic")
        )
        return f"{more} {what} more"
    return "" if time or saving.weight_bytes else "nothing would be saved"
