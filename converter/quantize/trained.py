"""Placement and ranges of a quantize-aware model, from what it learned and without data."""

from __future__ import annotations

import numpy as np

from converter.quantize import weight_only
from converter.quantize.learned import NOT_LEARNED, Learned
from converter.quantize.observation import Observed, derive, to_observe
from converter.quantize.placement import Placement
from converter.quantize.rules import INT16
from converter.quantize.scales import Form, Range, representable
from converter.quantize.weights import on_grid
from schema.graph import Constant, Graph, Tensor, all_nodes


def add_ranges(placement: Placement, learned: Learned, io_dtype: np.dtype | None, observed: Observed) -> Placement:
    """The placement without the nodes that touch a tensor of unknown range; the ranges of the others are added."""
    unknown: dict[Tensor, str] = {}
    while True:
        forms = to_observe(placement, io_dtype)
        known = {form: _range_of(form, learned, placement.graph) for form in forms}
        missing = [tensor for (tensor, _), found in known.items() if found is None and tensor not in unknown]
        if not missing:
            break
        unknown.update((tensor, NOT_LEARNED.format(f"'{tensor.name}'")) for tensor in missing)
        placement = placement.without(unknown)
    observed.unbounded.update(unknown)
    observed.ranges.update({form: found for form, found in known.items() if found is not None})
    derive(placement, observed)
    return placement.without(observed.unbounded) if observed.unbounded else placement


def _range_of(form: Form, learned: Learned, graph: Graph) -> Range | None:
    """What training rounded the tensor to, whatever its dtype was, or what is moved into it."""
    own = learned.of(*form)
    if own is not None:
        return representable(own, form[1])
    dtype, other = learned.parameters.get(form[0], (INT16, learned.moved(graph, form[0])))
    return None if other is None else representable(other, dtype)


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
