"""GATHER: (x, indices) -> x's slices at those indices along an axis; batch_dims leading axes are shared (tf.gather).

Shape: x[:axis] + indices[batch_dims:] + x[axis + 1:]. An index outside of the axis is an error.
"""

from __future__ import annotations

import numpy as np

from schema.errors import ExecutionError
from schema.graph import TensorType
from schema.ops.attributes import GatherAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, INTEGERS, require_dtype
from schema.ops.operands import merge, normalize_axis, product


class Gather(Op):
    name = "GATHER"
    Attributes = GatherAttributes
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, indices = inputs
        require_dtype(cls.name, "input", x, ANY)
        require_dtype(cls.name, "the tensor of indices", indices, INTEGERS)
        if x.shape is None or indices.shape is None:
            return [TensorType(None, x.dtype)]
        axis, batch_dims = resolve(attributes, x.rank, indices.rank)
        batch = [
            merge(a, b, "batch dims") for a, b in zip(x.shape[:batch_dims], indices.shape[:batch_dims], strict=True)
        ]
        if values[1] is not None and values[1].size and x.shape[axis] is not None:
            low, high = int(values[1].min()), int(values[1].max())
            require(low >= 0 and high < x.shape[axis], f"indices {low} to {high} are outside of axis {axis} of {x}")
        shape = (*batch, *x.shape[batch_dims:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
        return [TensorType(shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, indices = arrays
        axis, batch_dims = resolve(attributes, x.ndim, indices.ndim)
        check_indices(indices, x.shape[axis])
        if batch_dims == 0:
            return [np.asarray(np.take(x, indices, axis))]
        batch, inner = x.shape[:batch_dims], indices.shape[batch_dims:]
        flat_x = x.reshape(product(batch), *x.shape[batch_dims:])
        flat_indices = indices.reshape(product(batch), product(inner))
        rows = [np.take(a, i, axis - batch_dims) for a, i in zip(flat_x, flat_indices, strict=True)]
        shape = (*batch, *x.shape[batch_dims:axis], *inner, *x.shape[axis + 1 :])
        return [np.array(rows, x.dtype).reshape(shape)]


def resolve(attributes: GatherAttributes, rank: int, index_rank: int) -> tuple[int, int]:
    """(axis, batch_dims), both counted from the front."""
    axis = normalize_axis(attributes.axis, rank)
    batch_dims = attributes.batch_dims + (index_rank if attributes.batch_dims < 0 else 0)
    require(
        0 <= batch_dims <= min(axis, index_rank),
        f"batch_dims {attributes.batch_dims} for axis {axis} and indices of rank {index_rank}",
    )
    return axis, batch_dims


def check_indices(indices: np.ndarray, size: int) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise ExecutionError(f"indices {indices.min()} to {indices.max()} are outside of an axis of {size}")
