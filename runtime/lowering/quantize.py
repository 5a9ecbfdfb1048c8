"""QUANTIZE: float32 -> int8 by arithmetic, int8 -> int8 by a table."""

from __future__ import annotations

import numpy as np

from runtime.kernels.elementwise_parameters import QUANTIZE
from runtime.lowering import lookup
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK

FAMILY = "runtime.kernels.quantize"


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    quantization = output.quantization
    if given is None or output.dtype != np.int8 or quantization is None or quantization.per_channel:
        return None
    if given.dtype != np.float32:
        return lookup.lower(context)
    count = int(np.prod(output.shape, dtype=np.int64))
    params = {
        "input": context.input(0),
        "output": context.output(),
        "count": count,
        "chunk": CHUNK,
        "scale": float(quantization.scale[0]),
        "zero_point": float(quantization.zero_point[0]),
    }
    return [Call(FAMILY, "xnn_quantize_f32_i8", QUANTIZE, params, -(-count // CHUNK))]
