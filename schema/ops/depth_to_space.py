"""DEPTH_TO_SPACE: x NHWC -> (N, H*b, W*b, C/(b*b)): the inverse of SPACE_TO_DEPTH (tf.nn.depth_to_space)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import BlockSizeAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype


class DepthToSpace(Op):
    name = "DEPTH_TO_SPACE"
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
        require(c is None or c % (block * block) == 0, f"the channels of {x} do not divide into blocks of {block}")
        shape = (n, None if h is None else h * block, None if w is None else w * block, c and c // (block * block))
        return [TensorType(shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, b = arrays[0], attributes.block_size
        n, h, w, c = x.shape
        pixels = x.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5)
        return [np.ascontiguousarray(pixels).reshape(n, h * b, w * b, c // (b * b))]
