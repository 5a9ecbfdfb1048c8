"""PAD: (x, paddings int[rank, 2]) -> x with zeros (quantized: zero points) before and after each axis (tf.pad)."""

from __future__ import annotations

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.padding import infer_padded, pad, zero_of


class Pad(Op):
    name = "PAD"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        return [TensorType(infer_padded(cls.name, inputs, values)[0], inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [pad(arrays[0], arrays[1], constant_values=zero_of(outputs[0]))]
