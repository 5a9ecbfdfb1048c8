"""MEAN, SUM, REDUCE_MAX and REDUCE_MIN over neighbouring axes."""

from __future__ import annotations

import math

import numpy as np

from runtime.kernels.reduction_parameters import REDUCTION
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.requantization import per_tensor
from schema import fixedpoint
from schema.ops.reduction import normalize_axes

FAMILY = "runtime.kernels.reduction"
SUFFIXES = {np.dtype(np.float32): "f32", np.dtype(np.int8): "i8", np.dtype(np.int16): "i16"}
CHUNK = 512  # inner elements of a tile
MOST_SUMMED = {"i8": 1 << 23, "i16": 1 << 15}  # of one sum, so that it fits int32


def lower(context: LoweringContext) -> list[Call] | None:
    x, axes, output = context.inputs[0], context.constant(1), context.outputs[0]
    suffix = SUFFIXES.get(output.dtype)
    if x is None or axes is None or suffix is None or x.dtype != output.dtype or 0 in (x.shape or ()):
        return None
    shape = x.shape or ()
    reduced_axes = normalize_axes(axes, len(shape))
    # Axes of one element may be seen as reduced or not.
    spread = [a for a in reduced_axes if shape[a] != 1]
    first, last = (spread[0], spread[-1] + 1) if spread else (0, 0)
    if math.prod(shape[first:last]) != math.prod(shape[a] for a in spread):
        return None
    outer, reduced, inner = math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])
    name = {"REDUCE_MAX": "max", "REDUCE_MIN": "min"}.get(context.node.op, "sum")
    scaling = {"factor": 1.0 / reduced if context.node.op == "MEAN" else 1.0}
    scaling |= dict.fromkeys(("offset", "multiplier", "shift", "zero_point"), 0)
    if suffix in MOST_SUMMED and name == "sum":
        multiplier = _multiplier(context, reduced)
        if multiplier is None or reduced > MOST_SUMMED[suffix]:
            return None
        scaling |= multiplier
    chunk = min(inner, CHUNK)
    chunks = -(-inner // chunk)
    params = {
        "input": context.input(0),
        "output": context.output(),
        "reduced": reduced,
        "inner": inner,
        "chunk": chunk,
        "chunks": chunks,
        **scaling,
    }
    grain = max(1, (1 << 13) // (reduced * chunk))
    return [Call(FAMILY, f"xnn_{name}_{suffix}", REDUCTION, params, outer * chunks, grain, 8 * CHUNK)]


def _multiplier(context: LoweringContext, count: int) -> dict[str, int] | None:
    """How sums of integers become the output's integers: QuantizedMeanOrSum of TFLite reference/reduce.h."""
    given, wanted = per_tensor(context.inputs[0]), per_tensor(context.outputs[0])
    if given is None or wanted is None:
        return None
    q31, shift = fixedpoint.quantize_multiplier(float(given[0]) / float(wanted[0]))
    if context.node.op == "MEAN":
        more = min(count.bit_length() - 1, 32, 31 + shift)
        q31, shift = (q31 << more) // count, shift - more
    return {"offset": -count * given[1], "multiplier": q31, "shift": shift, "zero_point": wanted[1]}
