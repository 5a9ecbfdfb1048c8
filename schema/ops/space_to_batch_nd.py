"""SPACE_TO_BATCH_ND: (x [N, m axes, rest], block int[m], paddings int[m, 2]) -> phases of x in the batch.

As tf.space_to_batch_nd. x is padded with zeros (quantized: zero points); output batch index = (phase within the
block, row by row) * N + n.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge, pairs, product
from schema.ops.padding import pad, zero_of


class SpaceToBatchNd(Op):
    name = "SPACE_TO_BATCH_ND"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        block, paddings = integers(cls.name, inputs, values, 1, "block"), pairs(cls.name, inputs, values, 2, "paddings")
        axes = length(inputs[1], "block")
        axes = merge(axes, None if inputs[2].shape is None else inputs[2].shape[0], "lengths of block and paddings")
        require(block is None or min(block, default=1) > 0, f"blocks of {block}")
        if x.shape is None or axes is None:
            return [TensorType(None if x.rank is None else (None,) * x.rank, x.dtype)]
        require(axes < x.rank, f"{axes} blocked axes and a batch axis are more than {x} has")
        spatial: list[int | None] = [None] * axes
        if block is not None and paddings is not None:
            for i, (dim, size, (before, after)) in enumerate(zip(x.shape[1:], block, paddings)):  # noqa: B905
                if dim is not None:
                    padded = dim + before + after
                    require(padded % size == 0, f"axis {i + 1} of {x}, padded to {padded}, does not divide by {size}")
                    spatial[i] = padded // size
        batch = None if block is None or x.shape[0] is None else x.shape[0] * product(block)
        return [TensorType((batch, *spatial, *x.shape[axes + 1 :]), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, block, paddings = arrays
        blocks = [int(b) for b in np.ravel(block)]
        m = len(blocks)
        around = [(0, 0), *paddings, *[(0, 0)] * (x.ndim - m - 1)]
        x = pad(x, around, constant_values=zero_of(outputs[0]))
        batch, spatial, rest = x.shape[0], x.shape[1 : m + 1], x.shape[m + 1 :]
        counts = [s // b for s, b in zip(spatial, blocks, strict=True)]
        split = x.reshape(batch, *(d for pair in zip(counts, blocks, strict=True) for d in pair), *rest)
        order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, split.ndim)]
        moved = np.ascontiguousarray(split.transpose(order))
        return [moved.reshape(batch * product(blocks), *counts, *rest)]
