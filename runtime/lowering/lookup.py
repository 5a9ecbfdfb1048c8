"""Functions of one int8 or int16 number: a table of all results of the reference. Also DEQUANTIZE, and QUANTIZE of
integers.
"""

from __future__ import annotations

import numpy as np

from runtime.kernels.elementwise_parameters import UNARY_TABLE
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK
from schema import ops
from schema.graph import TensorType

FAMILY = "runtime.kernels.lookup"
SYMBOLS = {  # (input, output) -> kernel
    ("int8", "int8"): "xnn_lookup_i8",
    ("int8", "int16"): "xnn_lookup_i8_i16",
    ("int8", "float32"): "xnn_lookup_i8_f32",
    ("int16", "int16"): "xnn_lookup_i16",
    ("int16", "int8"): "xnn_lookup_i16_i8",
    ("int16", "float32"): "xnn_lookup_i16_f32",
}


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    symbol = None if given is None else SYMBOLS.get((given.dtype.name, output.dtype.name))
    if given is None or symbol is None:
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
    """The reference's result for every number there is, from the lowest on."""
    numbers = np.iinfo(given.dtype)
    every = np.arange(int(numbers.min), int(numbers.max) + 1).astype(given.dtype)
    types = [TensorType(every.shape, given.dtype, given.quantization)]
    results = [TensorType(every.shape, output.dtype, output.quantization)]
    return ops.get(context.node.op).reference(context.attributes, [every], types, results)[0]
