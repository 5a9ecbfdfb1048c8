"""SOFTMAX along the last axis, with or without a mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels.parameters import ParameterBlock
from runtime.kernels.softmax_parameters import (
    MASKED_F32,
    MASKED_I8,
    MASKED_I16,
    SOFTMAX_F32,
    SOFTMAX_I8,
    SOFTMAX_I16,
)
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import broadcast
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
    if x is None or x.dtype != output.dtype or not shape or 0 in shape or x.shape != shape:
        return None
    if context.attributes.axis % len(shape) != len(shape) - 1:
        return None
    mask = _mask(context)
    if mask is None:
        return None
    params = {"input": context.input(0), "output": context.output(), "count": shape[-1], **mask}
    if output.dtype == np.float32:
        return _calls("f32", MASKED_F32 if mask else SOFTMAX_F32, context, {**params, "beta": context.attributes.beta})
    if output.dtype == np.int16:
        return _wide(context, params)
    if output.dtype != np.int8 or x.quantization is None:
        return None
    # A row that holds every int8 has every difference to its largest.
    every = np.arange(127, -129, -1).astype(np.int8)[np.newaxis]
    table = ScaledDifferences("SOFTMAX", every, context.attributes.beta, x)
    terms = np.where(table.counted, rescale(table.exponentials, -table.SUM_BITS), 0)
    params |= {
        "exponentials": context.derived("exponentials", lambda: np.append(table.exponentials[0], 0).astype(np.int32)),
        "terms": context.derived("terms", lambda: np.append(terms[0], 0).astype(np.int32)),
        "counted": int(table.counted.sum()),
    }
    return _calls("i8", MASKED_I8 if mask else SOFTMAX_I8, context, params)


def _calls(kind: str, block: ParameterBlock, context: LoweringContext, params: dict[str, Any]) -> list[Call]:
    shape = context.outputs[0].shape or ()
    name = f"masked_softmax_{kind}" if "mask" in params else f"softmax_{kind}"
    grain = max(1, (1 << 10) // params["count"])
    family = FAMILY_I16 if kind == "i16" else FAMILY
    return [Call(family, f"xnn_{name}", block, params, math.prod(shape[:-1]), grain)]


def _mask(context: LoweringContext) -> dict[str, Any] | None:
    """Parameters that say where the rows of a mask are, {} without one, None for masks that kernels do not follow."""
    mask = context.inputs[1] if len(context.inputs) > 1 else None
    if mask is None:
        return {}
    *rows, count = context.outputs[0].shape or ()
    shape = tuple(size or 0 for size in mask.shape or ()) or (1,)
    found = broadcast([shape[:-1]], rows)
    if len(found.outer) > 2:
        return None
    outer_stride, middle_stride = (0, 0, *found.strides[0])[-2:]
    # Of a mask that is the same along the last axis a byte stands for a whole row.
    columns = np.repeat(np.array([0, 1], np.uint8), count)
    return {
        "mask": context.input(1),
        "width": shape[-1],
        "whole": 0 if shape[-1] == count else context.derived(("columns", count), lambda: columns),
        "outer_stride": outer_stride,
        "middle": found.outer[-1] if found.outer else 1,
        "middle_stride": middle_stride,
        "inner": found.inner,
        "inner_stride": found.steps[0],
    }


def _wide(context: LoweringContext, params: dict[str, Any]) -> list[Call] | None:
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
    return _calls("i16", MASKED_I16 if "mask" in params else SOFTMAX_I16, context, params)
