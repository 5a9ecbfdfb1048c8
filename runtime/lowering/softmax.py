"""SOFTMAX along the last axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels.softmax_parameters import SOFTMAX_F32, SOFTMAX_I8, SOFTMAX_I16
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.requantization import per_tensor
from schema import fixedpoint
from schema.ops.fixed_point_functions import rescale
from schema.ops.interpolated_table import OUTPUT_SCALE
from schema.ops.normalization import ScaledDifferences
from schema.ops.softmax import exponential_table, inverse_table, table_multiplier

FAMILY = "runtime.kernels.softmax"
FAMILY_I16 = "runtime.kernels.softmax_i16"
MOST_SUMMED = 1 << 15  # numbers of 15 bits whose sum is an int32


def lower(context: LoweringContext) -> list[Call] | None:
    x, output = context.inputs[0], context.outputs[0]
    shape = output.shape or ()
    if x is None or x.dtype != output.dtype or not shape or 0 in shape:
        return None
    if context.attributes.axis % len(shape) != len(shape) - 1:
        return None
    count = shape[-1] or 0
    params = {"input": context.input(0), "output": context.output(), "count": count}
    rows, grain = math.prod(shape[:-1]), max(1, (1 << 10) // count)
    if output.dtype == np.float32:
        return [Call(FAMILY, "xnn_softmax_f32", SOFTMAX_F32, params | {"beta": context.attributes.beta}, rows, grain)]
    if output.dtype == np.int16:
        return _wide(context, params, rows, grain)
    if output.dtype != np.int8 or x.quantization is None:
        return None
    # A row that holds every int8 has every difference to its largest.
    every = np.arange(127, -129, -1).astype(np.int8)[np.newaxis]
    table = ScaledDifferences("SOFTMAX", every, context.attributes.beta, x)
    terms = np.where(table.counted, rescale(table.exponentials, -table.SUM_BITS), 0)
    params |= {
        "exponentials": context.derived("exponentials", lambda: table.exponentials[0].astype(np.int32)),
        "terms": context.derived("terms", lambda: terms[0].astype(np.int32)),
        "counted": int(table.counted.sum()),
    }
    return [Call(FAMILY, "xnn_softmax_i8", SOFTMAX_I8, params, rows, grain)]


def _wide(context: LoweringContext, params: dict[str, Any], rows: int, grain: int) -> list[Call] | None:
    given, wanted = per_tensor(context.inputs[0]), per_tensor(context.outputs[0])
    if given is None or wanted != (np.float32(OUTPUT_SCALE), 0) or params["count"] > MOST_SUMMED:
        return None
    q31, shift = fixedpoint.quantize_multiplier(table_multiplier(given[0], context.attributes.beta))
    params |= {
        "multiplier": q31,
        "shift": shift,
        "exponentials": context.derived("exponentials", exponential_table),
        "inverses": context.derived("inverses", inverse_table),
    }
    return [Call(FAMILY_I16, "xnn_softmax_i16", SOFTMAX_I16, params, rows, grain)]
