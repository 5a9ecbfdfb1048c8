"""Sums of int8 tensors as linear functions: found and proven on all 65,536 pairs of operands."""

from __future__ import annotations

import numpy as np

from runtime.lowering.base import LoweringContext
from runtime.lowering.requantization import per_tensor
from schema import fixedpoint
from schema.ops.attributes import activation_range

SIGNS = {"ADD": 1, "SUB": -1}
ROUNDING = 2.0**-12  # more than float32 arithmetic on numbers below 2**9 can be off
WORTH = 2.0**-6  # with a larger margin too many results would have to be looked up


def find_linear(context: LoweringContext, table: np.ndarray) -> dict[str, float] | None:
    """Slots of BINARY_LINEAR, or None where the table is no rounded linear function.

    table: int8 (256, 256), the result of each pair. `margin` is how near to a tie results still differ from it, so that
    the kernel looks those up.
    """
    sign, (first, second) = SIGNS.get(context.node.op), (per_tensor(kind) for kind in context.inputs)
    output = per_tensor(context.outputs[0])
    if sign is None or first is None or second is None or output is None:
        return None
    a_factor, b_factor = float(first[0]) / float(output[0]), sign * float(second[0]) / float(output[0])
    offset = output[1] - a_factor * first[1] - b_factor * second[1]
    every = np.arange(-128, 128, dtype=np.float64)
    exact = a_factor * every[:, np.newaxis] + b_factor * every + offset
    if np.abs(exact).max() > 2**9:
        return None
    low, high = fixedpoint.activation_bounds(*activation_range(context.attributes), context.outputs[0])
    rounded = np.rint(exact)
    differ = np.clip(rounded, low, high) != table
    margin = ROUNDING + (0.5 - np.abs(exact - rounded))[differ].max(initial=0.0)
    if margin > WORTH:
        return None
    factors = {"a_factor": a_factor, "b_factor": b_factor, "offset": offset, "margin": margin}
    return factors | {"low": float(low), "high": float(high)}
