"""QUANTIZE: float32 -> int8 and int16 by arithmetic, integers by a table."""

from __future__ import annotations

import numpy as np

from runtime.kernels.elementwise_parameters import QUANTIZE
from runtime.lowering import lookup
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK

FAMILY = "runtime.kernels.quantize"
SUFFIXES = {np.dtype(np.int8): "i8", np.dtype(np.int16): "i16"}


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    quantization = output.quantization
    if given is None or output.dtype not in SUFFIXES or quantization is None or quantization.per_channel:
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
    return [Call(FAMILY, f"xnn_quantize_f32_{SUFFIXES[output.dtype]}", QUANTIZE, params, -(-count // CHUNK))]
