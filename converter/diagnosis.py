"""What was found in a graph, what each finding saves in multiply-accumulates, bytes and memory traffic, what was done,
and what was not done and why.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from converter.costs import node_costs, stored_bytes
from converter.linear import LINEAR
from converter.passes import manager
from converter.tables import table
from schema.costs import Cost
from schema.graph import Constant, Graph, all_nodes

SHOWN = 3
"""Places of one rewrite that the table names."""


@dataclass(frozen=True)
class Finding:
    """rewrite: the pass's name. places: a line for each place. saving: what all of them save or would save; negative
    where something grows. reason: why they are not done, "" where they are.
    """

    rewrite: str
    places: tuple[str, ...]
    saving: Cost
    reason: str = ""

    @property
    def done(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class OpShare:
    """All nodes of one op, after the rewrites."""

    op: str
    nodes: int
    cost: Cost


@dataclass(frozen=True)
class Kernel:
    """Weights of a linear layer. zeros: their share. values: how many different ones beside 0, before each channel's
    factor.
    """

    layer: str
    weights: int
    zeros: float
    values: int
    bytes: int


@dataclass(frozen=True)
class Diagnosis:
    """before, after: of the whole graph, for one sample, with weights as they are before quantization."""

    before: Cost
    after: Cost
    ops: tuple[OpShare, ...]
    kernels: tuple[Kernel, ...]
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = dataclasses.asdict(self)
        for entry, finding in zip(found["findings"], self.findings, strict=True):
            entry["done"] = finding.done
        return found

    def __str__(self) -> str:
        """For people."""
        head = "per sample: {} multiply-accumulates, {} bytes of weights, {} bytes of memory traffic"
        lines = [f"{when}, {head.format(*_numbers(cost))}" for when, cost in self._ends()]
        rows = [("op", "nodes", "MACs", "weight bytes", "traffic")]
        rows += [(share.op, str(share.nodes), *_numbers(share.cost)) for share in self.ops]
        kernels = [("layer", "weights", "zeros", "values", "bytes")]
        kernels += [
            (k.layer, _short(k.weights), f"{k.zeros:.1%}", _short(k.values), _short(k.bytes)) for k in self.kernels
        ]
        return "\n\n".join(
            [
                "\n".join(lines),
                table(rows, right=(1, 2, 3, 4)),
                table(kernels, right=(1, 2, 3, 4)),
                self._table(True, "done", "nothing was done"),
                self._table(False, "not done", "nothing was found that was not done"),
            ]
        )

    def _ends(self) -> list[tuple[str, Cost]]:
        return [("before", self.before), ("after", self.after)]

    def _table(self, done: bool, title: str, nothing: str) -> str:
        chosen = [finding for finding in self.findings if finding.done == done]
        if not chosen:
            return nothing
        rows: list[tuple[str, ...]] = [
            (title, "MACs saved", "bytes", "traffic", "where" if done else "where, and why not")
        ]
        for finding in chosen:
            rows += _rows(finding)
        return table(rows, right=(1, 2, 3))


def _rows(finding: Finding) -> list[tuple[str, ...]]:
    reason = f": {finding.reason}" if finding.reason else ""
    places = [f"{place}{reason}" for place in finding.places[:SHOWN]]
    if len(finding.places) > SHOWN:
        places.append(f"and {len(finding.places) - SHOWN} more")
    heads = [(finding.rewrite, *_numbers(finding.saving)), *[("", "", "", "")] * (len(places) - 1)]
    return [(*head, place) for head, place in zip(heads, places, strict=True)]


def _numbers(cost: Cost) -> tuple[str, str, str]:
    return _short(cost.macs), _short(cost.weight_bytes), _short(cost.traffic)


def _short(number: int) -> str:
    """Three digits or four and a letter: 41.72M."""
    for letter, unit in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if abs(number) >= 10 * unit:
            return f"{number / unit:.4g}{letter}"
    return str(number)


def diagnose(graph: Graph, explanation: manager.Explanation) -> Diagnosis:
    """Of a graph that `manager.optimize` has rewritten, measuring."""
    assert explanation.before is not None
    assert explanation.after is not None
    findings = [
        Finding(name, tuple(dict.fromkeys(explanation.of(name))), saving)
        for name, saving in explanation.savings.items()
    ]
    for name, candidate in manager.left_over(graph):
        findings.append(Finding(name, (candidate.where,), candidate.saving, candidate.against))
    return Diagnosis(explanation.before, explanation.after, _ops(graph), _kernels(graph), tuple(findings))


def _ops(graph: Graph) -> tuple[OpShare, ...]:
    """Those that compute or move most first."""
    shares: dict[str, OpShare] = {}
    for node, cost in node_costs(graph):
        share = shares.get(node.op, OpShare(node.op, 0, Cost()))
        shares[node.op] = OpShare(node.op, share.nodes + 1, share.cost + cost)
    return tuple(sorted(shares.values(), key=lambda share: (share.cost.macs, share.cost.traffic), reverse=True))


def _kernels(graph: Graph) -> tuple[Kernel, ...]:
    found: dict[Constant, Kernel] = {}
    for node in all_nodes(graph):
        if node.op not in LINEAR:
            continue
        weights = node.inputs[LINEAR[node.op].weights]
        if weights is None or weights.constant is None or weights.constant in found:
            continue
        values = np.asarray(weights.constant.values)
        zeros = values.size - int(np.count_nonzero(values))
        distinct = int(np.unique(values[values != 0]).size)
        found[weights.constant] = Kernel(
            node.name, values.size, zeros / max(values.size, 1), distinct, stored_bytes(weights)
        )
    return tuple(found.values())
