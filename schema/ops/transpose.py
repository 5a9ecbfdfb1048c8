"""TRANSPOSE: (x, perm int[rank]) -> axis i of the output is axis perm[i] of x (tf.transpose)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge, normalize_axis, unknown


class Transpose(Op):
    name = "TRANSPOSE"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        perm = integers(cls.name, inputs, values, 1, "the permutation")
        rank = merge(
            x.rank, length(inputs[1], "the permutation") if perm is None else len(perm), "ranks of x and permutation"
        )
        if perm is None or rank is None:
            return [TensorType(unknown(rank), x.dtype)]
        axes = [normalize_axis(axis, rank) for axis in perm]
        require(sorted(axes) == list(range(rank)), f"{perm} is no permutation of {rank} axes")
        return [TensorType(unknown(rank) if x.shape is None else tuple(x.shape[a] for a in axes), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.array(np.transpose(arrays[0], [int(a) for a in np.ravel(arrays[1])]), order="C")]
