"""SPACE_TO_DEPTH: x NHWC -> (N, H/b, W/b, b*b*C): each b x b block of pixels becomes one, row by row.

As tf.nn.space_to_depth.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import BlockSizeAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype


class SpaceToDepth(Op):
    name = "SPACE_TO_DEPTH"
    Attributes = BlockSizeAttributes

    @classmethod
    def check(cls, attributes):
        require(attributes.block_size > 0, f"blocks of {attributes.block_size}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, block = inputs[0], attributes.block_size
        require_dtype(cls.name, "input", x, ANY)
        if x.shape is None:
            return [TensorType((None,) * 4, x.dtype)]
        require(x.rank == 4, f"the input is {x}, not NHWC")
        n, h, w, c = x.shape
        for size in (h, w):
            require(size is None or size % block == 0, f"{x} does not divide into blocks of {block}")
        shape = (n, h and h // block, w and w // block, None if c is None else c * block * block)
        return [TensorType(shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, b = arrays[0], attributes.block_size
        n, h, w, c = x.shape
        blocks = x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
        return [np.ascontiguousarray(blocks).reshape(n, h // b, w // b, b * b * c)]
