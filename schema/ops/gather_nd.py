"""GATHER_ND: (x, indices [..., k]) -> x[indices[..., 0], ..., indices[..., k - 1]] (tf.gather_nd).

Shape: indices[:-1] + x[k:]. An index outside of its axis is an error.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, INTEGERS, require_dtype
from schema.ops.gather import check_indices


class GatherNd(Op):
    name = "GATHER_ND"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, indices = inputs
        require_dtype(cls.name, "input", x, ANY)
        require_dtype(cls.name, "the tensor of indices", indices, INTEGERS)
        require(indices.rank != 0, "the tensor of indices is a scalar")
        depth = None if indices.shape is None else indices.shape[-1]
        if depth is None or x.shape is None:
            return [TensorType(None, x.dtype)]
        require(depth <= x.rank, f"indices {indices} name {depth} axes of {x}")
        if values[1] is not None and values[1].size:
            for axis in range(depth):
                low, high = int(values[1][..., axis].min()), int(values[1][..., axis].max())
                require(
                    x.shape[axis] is None or (low >= 0 and high < x.shape[axis]),
                    f"indices {low} to {high} are outside of axis {axis} of {x}",
                )
        return [TensorType((*indices.shape[:-1], *x.shape[depth:]), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, indices = arrays
        for axis in range(indices.shape[-1]):
            check_indices(indices[..., axis], x.shape[axis])
        if indices.shape[-1] == 0:
            return [np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()]
        return [np.array(x[tuple(np.moveaxis(indices, -1, 0))], order="C")]
