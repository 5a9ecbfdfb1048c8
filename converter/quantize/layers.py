"""Which layers the user named, by patterns as of `fnmatch` on layer names: `conv1`, `block?/*`, `*[13]`."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.options import Options
from converter.quantize.rules import INT8, INT16, Rule
from schema.errors import InputError
from schema.graph import Graph, Node, all_nodes

LISTED = 8  # how many names a message lists


@dataclass(frozen=True)
class Wanted:
    """What nodes were asked to be. dtype: of activations. int16: nodes for which they are int16, whatever `dtype`.

    kept: nodes that stay float, and why. int8: nodes that stay int8 between int16 ones too. loops: WHILE nodes that
    carry integers, and their rules.
    """

    dtype: np.dtype = INT8
    int16: Set[Node] = frozenset()
    kept: Mapping[Node, str] = field(default_factory=dict)
    loops: Mapping[Node, Rule] = field(default_factory=dict)
    int8: Set[Node] = frozenset()

    def of(self, node: Node) -> np.dtype:
        """The dtype of a node's activations."""
        return INT16 if node in self.int16 else self.dtype


def wanted(graph: Graph, options: Options) -> Wanted:
    """Raises InputError for a pattern that matches no layer. Where both options name a layer, keep_float goes first."""
    dtype = INT16 if options.method == "int16x8" else INT8
    return Wanted(dtype, matching(list(all_nodes(graph)), options.int16, "int16").keys(), kept_nodes(graph, options))


def kept_nodes(graph: Graph, options: Options) -> dict[Node, str]:
    """The nodes that keep_float names, and a reason that says so."""
    found = matching(list(all_nodes(graph)), options.keep_float, "keep_float")
    return {node: f"keep_float names it ({pattern!r})" for node, pattern in found.items()}


def layer_name(node: Node) -> str:
    """What reports call the node's layer: its name in the source, else its output's."""
    return node.name or node.outputs[0].name


def matching(nodes: Sequence[Node], patterns: Sequence[str], option: str) -> dict[Node, str]:
    """Those of the nodes whose layers a pattern matches, with the first such pattern.

    Upper and lower case differ. Raises InputError for a pattern that matches no layer; option: what to call them.
    """
    names = dict.fromkeys(layer_name(node) for node in nodes)
    matched: dict[str, str] = {}
    for pattern in patterns:
        found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise InputError(f"{option} {pattern!r} matches no layer{_suggestion(pattern, list(names))}")
        for name in found:
            matched.setdefault(name, pattern)
    return {node: matched[layer_name(node)] for node in nodes if layer_name(node) in matched}


def _suggestion(pattern: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(pattern, names, LISTED, 0.5)
    upper = [name for name in names if fnmatch.fnmatchcase(name.lower(), pattern.lower())]
    listed = list(dict.fromkeys([*upper, *close]))[:LISTED]
    if listed:
        return f"; close to it are {', '.join(listed)}"
    others = f" and {len(names) - LISTED} others" if len(names) > LISTED else ""
    return f"; there are {', '.join(names[:LISTED])}{others} (a layer that was fused has the name of the other)"
