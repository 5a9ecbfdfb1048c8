"""Functions of one int8 number: a table of the reference's 256 results. Also DEQUANTIZE and int8 -> int8 QUANTIZE."""

from __future__ import annotations

import numpy as np

from runtime.kernels.elementwise_parameters import UNARY_TABLE
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK
from schema import ops
from schema.graph import TensorType

FAMILY = "runtime.kernels.lookup"
SYMBOLS = {np.dtype(np.int8): "xnn_lookup_i8", np.dtype(np.float32): "xnn_lookup_i8_f32"}


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    symbol = SYMBOLS.get(output.dtype)
    if given is None or given.dtype != np.int8 or symbol is None:
        return None
    if given.quantization is None or given.quantization.per_channel:
        return None
    count = int(np.prod(output.shape, dtype=np.int64))
    params = {
        "input": context.input(0),
        "output": context.output(),
        "count": count,
        "chunk": CHUNK,
        "table": context.derived("table", lambda: table(context, given, output)),
    }
    return [Call(FAMILY, symbol, UNARY_TABLE, params, -(-count // CHUNK))]


def table(context: LoweringContext, given: TensorType, output: TensorType) -> np.ndarray:
    """The reference's result for -128, -127, ... 127."""
    every = np.arange(-128, 128).astype(np.int8)
    types = [TensorType((256,), np.dtype(np.int8), given.quantization)]
    results = [TensorType((256,), output.dtype, output.quantization)]
    return ops.get(context.node.op).reference(context.attributes, [every], types, results)[0]
