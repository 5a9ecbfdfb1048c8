"""MIRROR_PAD: (x, paddings int[rank, 2]) -> x mirrored at its borders (tf.pad).

REFLECT leaves the border itself out, SYMMETRIC repeats it.
"""

from __future__ import annotations

from schema.graph import TensorType
from schema.ops.attributes import MirrorPadAttributes
from schema.ops.base import Op, require
from schema.ops.padding import infer_padded, pad


class MirrorPad(Op):
    name = "MIRROR_PAD"
    Attributes = MirrorPadAttributes
    inputs = (2, 2)

    @classmethod
    def check(cls, attributes):
        require(attributes.mode in ("REFLECT", "SYMMETRIC"), f"mode {attributes.mode}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        shape, amounts = infer_padded(cls.name, inputs, values)
        if amounts is not None and x.shape is not None:
            border = int(attributes.mode == "REFLECT")
            for axis, (dim, amount) in enumerate(zip(x.shape, amounts, strict=True)):
                require(
                    dim is None or max(amount) <= max(dim - border, 0),
                    f"{attributes.mode} pads axis {axis} of {x} by {max(amount)}",
                )
        return [TensorType(shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [pad(arrays[0], arrays[1], attributes.mode.lower())]
