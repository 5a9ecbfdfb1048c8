"""BATCH_TO_SPACE_ND: (x, block int[m], crops int[m, 2]) -> SPACE_TO_BATCH_ND undone, cropped (tf.batch_to_space)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge, pairs, product


class BatchToSpaceNd(Op):
    name = "BATCH_TO_SPACE_ND"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        block, crops = integers(cls.name, inputs, values, 1, "block"), pairs(cls.name, inputs, values, 2, "crops")
        axes = length(inputs[1], "block")
        axes = merge(axes, None if inputs[2].shape is None else inputs[2].shape[0], "lengths of block and crops")
        require(block is None or min(block, default=1) > 0, f"blocks of {block}")
        if x.shape is None or axes is None:
            return [TensorType(None if x.rank is None else (None,) * x.rank, x.dtype)]
        require(axes < x.rank, f"{axes} blocked axes and a batch axis are more than {x} has")
        spatial: list[int | None] = [None] * axes
        if block is not None and crops is not None:
            for i, (dim, size, (before, after)) in enumerate(zip(x.shape[1:], block, crops)):  # noqa: B905
                if dim is not None:
                    spatial[i] = kept = dim * size - before - after
                    require(kept >= 0, f"crops {before} and {after} take more than axis {i + 1} of {x} has")
        batch = None
        if block is not None and x.shape[0] is not None:
            phases = product(block)
            require(x.shape[0] % phases == 0, f"the batch of {x} does not divide by blocks of {block}")
            batch = x.shape[0] // phases
        return [TensorType((batch, *spatial, *x.shape[axes + 1 :]), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, block, crops = arrays
        blocks = [int(b) for b in np.ravel(block)]
        m = len(blocks)
        batch, spatial, rest = x.shape[0] // product(blocks), x.shape[1 : m + 1], x.shape[m + 1 :]
        split = x.reshape(*blocks, batch, *spatial, *rest)
        order = [m, *(axis for i in range(m) for axis in (m + 1 + i, i)), *range(2 * m + 1, split.ndim)]
        sizes = [s * b for s, b in zip(spatial, blocks, strict=True)]
        whole = np.ascontiguousarray(split.transpose(order)).reshape(batch, *sizes, *rest)
        kept = [slice(None)]
        kept += [slice(int(before), size - int(after)) for size, (before, after) in zip(sizes, crops, strict=True)]
        return [np.ascontiguousarray(whole[tuple(kept)])]
