"""CUMSUM: (x, axis) -> running sums along the axis.

exclusive leaves each element itself out, reverse runs from the end. int8: sums of x - zero_point, requantized as SUM
does; TFLite has no such kernel.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import CumsumAttributes
from schema.ops.base import Op
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, per_tensor, require_dtype
from schema.ops.operands import normalize_axis
from schema.ops.reduction import infer_axis, wide


class Cumsum(Op):
    name = "CUMSUM"
    Attributes = CumsumAttributes
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], FLOATS | INTEGERS | QUANTIZED)
        infer_axis(cls.name, inputs[1], values[1], inputs[0].rank)
        return [TensorType(inputs[0].shape, inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        if x.dtype in QUANTIZED:
            scale, zero_point = per_tensor(cls.name, "input", inputs[0])
            output_scale, output_zero = per_tensor(cls.name, "output", outputs[0])
            total = cls.sums(attributes, x.astype(np.int64) - zero_point, arrays[1])
            scaled = fixedpoint.multiply_by_real(fixedpoint.saturate(total), float(scale) / float(output_scale))
            return [fixedpoint.saturate(scaled + output_zero, x.dtype).astype(x.dtype)]
        return [cls.sums(attributes, x, arrays[1])]

    @classmethod
    def sums(cls, attributes: CumsumAttributes, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """The running sums of plain numbers."""
        along = normalize_axis(int(axis.reshape(())), x.ndim)
        ordered = np.moveaxis(x, along, -1)[..., :: -1 if attributes.reverse else 1]
        total = np.cumsum(ordered, axis=-1, dtype=wide(x))
        if attributes.exclusive:
            total = np.concatenate([np.zeros_like(total[..., :1]), total[..., :-1]], axis=-1)
        total = np.moveaxis(total[..., :: -1 if attributes.reverse else 1], -1, along)
        return np.ascontiguousarray(total.astype(x.dtype))
