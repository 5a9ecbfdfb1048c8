"""CONV(x, w) -> CONV(x, w + 0) where w holds -0.0, and so for every linear op.

Pruning that multiplies by a mask leaves -0.0 for each negative weight. In sums of products it is what 0.0 is, but it is
another value to store, and not one that sparse storage leaves out.
"""

from __future__ import annotations

import numpy as np

from converter.constants import is_float
from converter.linear import LINEAR
from converter.rewriter import layer
from schema.graph import Constant, Graph


def run(graph: Graph) -> list[str]:
    changes = []
    for node in graph.nodes:
        weights = node.inputs[LINEAR[node.op].weights] if node.op in LINEAR else None
        if weights is None or weights.constant is None or not is_float(weights):
            continue
        stored = weights.constant
        values = np.asarray(stored.values)
        if values.dtype.kind != "f" or not (np.signbit(values) & (values == 0)).any():
            continue
        weights.set_constant(Constant(values + values.dtype.type(0), stored.channel_scale, stored.axis))
        changes.append(f"{layer(node)}: -0 became 0 in '{weights.name}'")
    return changes
