"""SCATTER_ND: (indices [..., k], updates, shape) -> zeros of that shape with each update added at its index
(tf.scatter_nd).

updates: indices[:-1] + shape[k:]. Indices that occur more than once add up; an index outside of its axis is an error.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import AFFINE, FLOATS, INTEGERS, require_dtype
from schema.ops.gather import check_indices
from schema.ops.operands import integers, length, unknown


class ScatterNd(Op):
    name = "SCATTER_ND"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        indices, updates, _ = inputs
        require_dtype(cls.name, "the tensor of indices", indices, INTEGERS)
        require_dtype(cls.name, "updates", updates, FLOATS | INTEGERS | AFFINE)
        require(indices.rank != 0, "the tensor of indices is a scalar")
        shape = integers(cls.name, inputs, values, 2, "the shape")
        depth = None if indices.shape is None else indices.shape[-1]
        if shape is None:
            return [TensorType(unknown(length(inputs[2], "the shape")), updates.dtype)]
        require(min(shape, default=0) >= 0, f"the shape is {shape}")
        if depth is not None:
            require(depth <= len(shape), f"indices {indices} name {depth} axes of the shape {shape}")
            if updates.shape is not None:
                wanted = (*indices.shape[:-1], *shape[depth:])
                fits = len(wanted) == len(updates.shape) and all(
                    None in (a, b) or a == b for a, b in zip(wanted, updates.shape, strict=True)
                )
                require(fits, f"updates {updates} do not fit indices {indices} and shape {shape}")
        return [TensorType(tuple(shape), updates.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        indices, updates, shape = arrays[0], arrays[1], tuple(int(d) for d in np.ravel(arrays[2]))
        depth = indices.shape[-1]
        if depth == 0:  # every update is for the whole output
            return [np.asarray(updates.sum(axis=tuple(range(indices.ndim - 1)), dtype=updates.dtype))]
        for axis in range(depth):
            check_indices(indices[..., axis], shape[axis])
        result = np.zeros(shape, updates.dtype)
        np.add.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)  # type: ignore[arg-type]
        return [result]
