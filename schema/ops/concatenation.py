"""CONCATENATION: (x, ...) -> the inputs one after another along an axis.

int8 and int16 are copied: equal scales are the converter's duty. uint8 (legacy) is rescaled to the output's scale in
float32, as ConcatenationWithScaling of tensorflow/lite/kernels/internal/reference/concatenation.h.
"""

from __future__ import annotations

import numpy as np

from schema.fixedpoint import round_half_away, saturate
from schema.graph import TensorType
from schema.ops.attributes import AxisAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, per_tensor, require_dtype, require_same_dtype
from schema.ops.operands import merge, normalize_axis


class Concatenation(Op):
    name = "CONCATENATION"
    Attributes = AxisAttributes
    inputs = (1, None)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], ANY)
        require_same_dtype(cls.name, *inputs)
        if inputs[0].dtype == np.int8:
            scales = [x.quantization for x in inputs if x.quantization is not None]
            require(
                all(q == scales[0] for q in scales),
                f"int8 inputs are quantized differently ({scales}): requantize them to the output's scale first",
            )
        known = [x for x in inputs if x.shape is not None]
        if not known:
            return [TensorType(None, inputs[0].dtype)]
        rank = known[0].rank
        require(all(x.rank == rank for x in known), f"inputs {', '.join(map(str, known))} differ in rank")
        axis = normalize_axis(attributes.axis, rank)
        shape = list(known[0].shape)
        for x in known[1:]:
            for i in range(rank):
                if i != axis:
                    shape[i] = merge(shape[i], x.shape[i], f"sizes of axis {i}, not joined")
        sizes = [x.shape[axis] for x in known]
        shape[axis] = sum(sizes) if len(known) == len(inputs) and None not in sizes else None
        return [TensorType(tuple(shape), inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        if arrays[0].dtype == np.uint8 and outputs[0].quantization is not None:
            arrays = [rescale(a, t, outputs[0]) for a, t in zip(arrays, inputs, strict=True)]
        return [np.concatenate(arrays, attributes.axis)]


def rescale(array: np.ndarray, source: TensorType, target: TensorType) -> np.ndarray:
    if source.quantization is None or source.quantization == target.quantization:
        return array
    scale_in, zero_in = per_tensor("CONCATENATION", "input", source)
    scale_out, zero_out = per_tensor("CONCATENATION", "output", target)
    scale = scale_in * (np.float32(1) / scale_out)
    rounded = round_half_away(array.astype(np.float32) * scale - np.float32(zero_in) * scale).astype(np.int64)
    return saturate(rounded + zero_out, array.dtype).astype(array.dtype)
