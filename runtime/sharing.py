"""Whether the nodes of one native call are worth the help of other threads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runtime import fusion
from runtime.native.target import available_tiers, host_target
from schema import costs
from schema.graph import Node
from schema.inference import Inference

LEAST = 40_000
"""Nanoseconds: calling helpers, and having half of the data in another cache, costs what sharing less would save."""

# Multiply-accumulates in a nanosecond, about what kernels reach in small layers: by tier, of (int8, float32, others).
RATES = {
    "amx": (300, 50, 10),
    "avx512vnni": (150, 50, 10),
    "avx512": (60, 50, 10),
    "avxvnni": (80, 25, 5),
    "avx2": (40, 25, 5),
    "scalar": (4, 4, 2),
}
BYTES = 8  # in a nanosecond, of what is read and written


def is_worth_it(nodes: Sequence[Node], known: Inference) -> bool:
    """By an estimate of how long one thread takes for them; what it finds is the same on every run of a machine."""
    return any(total >= LEAST for total in itertools.accumulate(nanoseconds(node, known) for node in nodes))


def nanoseconds(node: Node, known: Inference) -> float:
    """About how long one thread takes for a node."""
    moved = costs.bytes_of([*fusion.reads(node), *node.outputs], known.types)
    of_int8, of_float32, of_others = RATES[available_tiers(host_target())[0]]
    rate = {"int8": of_int8, "float32": of_float32}.get(known.types[node.outputs[0]].dtype.name, of_others)
    return fusion.macs(node, known) / rate + moved / BYTES
