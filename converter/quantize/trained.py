"""Placement and ranges of a quantize-aware model, from what it learned and without data."""

from __future__ import annotations

import numpy as np

from converter.quantize import weight_only
from converter.quantize.learned import NOT_LEARNED, Learned
from converter.quantize.observation import Observed, derive, to_observe
from converter.quantize.placement import Placement
from converter.quantize.scales import representable
from converter.quantize.weights import on_grid
from schema.graph import Constant, Graph, Tensor, all_nodes


def ranges_of(placement: Placement, learned: Learned, io_dtype: np.dtype | None) -> tuple[Placement, Observed]:
    """The placement without the nodes that touch a tensor of unknown range, and the ranges of the others."""
    unknown: dict[Tensor, str] = {}
    while True:
        forms = to_observe(placement, io_dtype)
        missing = [tensor for tensor, _ in forms if tensor not in learned.parameters and tensor not in unknown]
        if not missing:
            break
        unknown.update((tensor, NOT_LEARNED.format(f"'{tensor.name}'")) for tensor in missing)
        placement = placement.without(unknown)
    observed = Observed(unbounded=dict(unknown))
    for tensor, dtype in forms:
        if tensor in learned.parameters:
            known, parameters = learned.parameters[tensor]
            observed.ranges[tensor, dtype] = representable(parameters, known)
    derive(placement, observed)
    return (placement.without(observed.unbounded) if observed.unbounded else placement), observed


def store_grids(graph: Graph) -> int:
    """Store the weights of float nodes that are integers times a step as such. Returns how many there are."""
    count = 0
    for node in all_nodes(graph):
        for tensor, axis in weight_only.weights_of(node).items():
            assert tensor.constant is not None
            if np.asarray(tensor.constant.values).dtype.kind != "f" or tensor.constant.values.size < axis + 2:
                continue
            channels = on_grid(tensor.value, axis)
            if channels is not None:
                tensor.set_constant(Constant(channels.base, channels.scale.astype(np.float32), axis))
                count += 1
    return count
