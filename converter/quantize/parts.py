"""The graphs that are quantized: the model's, and the bodies of its loops, each with a signature of float32.

In a loop the linear ops become integers, where most of its time goes and all of its weights are. What a recurrent layer
does besides stays float32: a state that is rounded in each step loses the sum of many small changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from converter.quantize.layers import Wanted
from converter.quantize.learned import Learned, lift, with_learned
from converter.quantize.observation import linear_nodes, to_observe
from converter.quantize.placement import Placement, place
from converter.quantize.rules import RULES
from converter.quantize.scales import Form
from schema.graph import Graph, Node, nested

IN_LOOPS = "what loops compute besides linear ops stays float"


@dataclass(eq=False)
class Part:
    """placement: of its nodes. io_dtype: that its inputs and outputs become, None where they stay float."""

    graph: Graph
    learned: Learned
    io_dtype: np.dtype | None = None
    placement: Placement = field(init=False)

    def place(self, asked: Wanted) -> None:
        self.placement = place(self.graph, wanted=with_learned(asked, self.learned, self.graph))

    def to_observe(self) -> list[Form]:
        """Forms whose range only data can tell."""
        return [form for form in to_observe(self.placement, self.io_dtype) if self.learned.of(*form) is None]

    def linear(self) -> list[Node]:
        return linear_nodes(self.placement)


def loops(graph: Graph) -> dict[Node, Graph]:
    """The bodies of a graph's WHILE nodes."""
    return {node: node.attributes.body for node in graph.nodes if node.op == "WHILE"}


def parts_of(graph: Graph, asked: Wanted, io_dtype: np.dtype | None) -> list[Part]:
    """The graph, then those inside of it that have something to quantize: all for which ranges were learned, or, where
    none were at all, the bodies of loops. Learned ranges are lifted out of them. asked: of the graph's nodes.
    """
    found = [Part(inner, lift(inner)) for inner in nested(graph)]
    found[0].io_dtype = io_dtype
    trained = any(part.learned for part in found)
    bodies = set(map(id, loops(graph).values()))
    chosen = [part for part in found[1:] if (part.learned if trained else id(part.graph) in bodies)]
    found[0].place(asked)
    for part in chosen:
        part.place(replace(asked, kept={**_kept(part, asked.dtype), **asked.kept}))
    return [found[0], *(part for part in chosen if part.placement.rules)]


def _kept(part: Part, dtype: np.dtype) -> Mapping[Node, str]:
    """All but linear ops, and those whose results were rounded while training."""
    rules, rounded = RULES[dtype], part.learned.parameters
    others = (node for node in part.graph.nodes if node.op not in rules or rules[node.op].weights is None)
    return {node: IN_LOOPS for node in others if not any(tensor in rounded for tensor in node.outputs)}
