"""BATCH_MATMUL: (a (..., m, k), b (..., k, n)) -> (..., m, n); leading axes broadcast.

adj_x, adj_y: the last two axes of a, of b, are swapped.

int8: acc = sum (a - zero_a) * (b - zero_b), requantized with one scale (TFLite reference/batch_matmul.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops import linear
from schema.ops.attributes import BatchMatMulAttributes
from schema.ops.base import Op, element_count, require
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.dtypes import (
    FLOATS,
    INTEGERS,
    QUANTIZED,
    WIDE,
    is_quantized,
    per_tensor,
    require_dtype,
    require_same_dtype,
)


class BatchMatMul(Op):
    name = "BATCH_MATMUL"
    Attributes = BatchMatMulAttributes
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        a, b = inputs
        require_dtype(cls.name, "input", a, FLOATS | INTEGERS | QUANTIZED | WIDE)
        require_same_dtype(cls.name, a, b)
        if a.shape is None or b.shape is None:
            return [TensorType(None, a.dtype)]
        require(min(a.rank, b.rank) >= 2, f"{a} and {b} are not both matrices")
        m, k = a.shape[:-3:-1] if attributes.adj_x else a.shape[-2:]
        depth, n = b.shape[:-3:-1] if attributes.adj_y else b.shape[-2:]
        require(None in (k, depth) or k == depth, f"matrices {a} and {b} do not fit: {k} columns, {depth} rows")
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2]) or ()
        return [TensorType((*batch, m, n), a.dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return element_count(outputs[0]) * inputs[0].shape[-2 if attributes.adj_x else -1]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        a = linear.centred(cls.name, "input", arrays[0], inputs[0])
        b = linear.centred(cls.name, "input", arrays[1], inputs[1])
        a = np.swapaxes(a, -1, -2) if attributes.adj_x else a
        b = np.swapaxes(b, -1, -2) if attributes.adj_y else b
        if not is_quantized(inputs[0]):
            return [(a @ b).astype(outputs[0].dtype)]
        dtype = linear.exact_dtype(a, b, -2)
        acc = (a.astype(dtype) @ b.astype(dtype)).astype(np.int64)
        (scale_a, _), (scale_b, _) = (per_tensor(cls.name, "input", t) for t in inputs)
        scale, zero_point = per_tensor(cls.name, "output", outputs[0])
        multiplier = np.float64(scale_a * scale_b) / np.float64(scale)
        if inputs[0].dtype in WIDE:
            return [fixedpoint.requantize_wide(acc, multiplier, -(2**15), 2**15 - 1).astype(outputs[0].dtype)]
        return [fixedpoint.requantize(acc, multiplier, zero_point, -128, 127).astype(outputs[0].dtype)]
