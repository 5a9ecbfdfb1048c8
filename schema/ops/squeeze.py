"""SQUEEZE: x -> x without the axes named, which must be 1; without all axes of 1 where none is named (tf.squeeze)."""

from __future__ import annotations

from schema.graph import TensorType
from schema.ops.attributes import SqueezeAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import normalize_axis


class Squeeze(Op):
    name = "SQUEEZE"
    Attributes = SqueezeAttributes

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        if x.shape is None or (not attributes.axes and None in x.shape):
            return [TensorType(None, x.dtype)]
        axes = squeezed(attributes, x.shape)
        for axis in axes:
            require(x.shape[axis] in (1, None), f"axis {axis} of {x} is not 1")
        return [TensorType(tuple(d for i, d in enumerate(x.shape) if i not in axes), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        return [x.squeeze(tuple(squeezed(attributes, x.shape)))]


def squeezed(attributes: SqueezeAttributes, shape: tuple[int | None, ...]) -> set[int]:
    if not attributes.axes:
        return {axis for axis, dim in enumerate(shape) if dim == 1}
    return {normalize_axis(axis, len(shape)) for axis in attributes.axes}
