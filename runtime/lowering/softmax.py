"""SOFTMAX along the last axis."""

from __future__ import annotations

import math

import numpy as np

from runtime.kernels.softmax_parameters import SOFTMAX_F32, SOFTMAX_I8
from runtime.lowering.base import Call, LoweringContext
from schema.ops.fixed_point_functions import rescale
from schema.ops.normalization import ScaledDifferences

FAMILY = "runtime.kernels.softmax"


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
