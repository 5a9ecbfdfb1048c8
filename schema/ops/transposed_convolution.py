"""What transposed convolutions share: the gradient of a convolution by its input, whose size is given as an operand.

Inputs are (output_shape, weights, x, optional bias), as in TFLite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from schema.graph import TensorType
from schema.ops import linear, windows
from schema.ops.attributes import check_activation
from schema.ops.base import Op, require
from schema.ops.dtypes import INTEGERS, require_dtype


class TransposedConvolution(Op):
    """Subclasses give `axes` and where their weights keep (*kernel, in, out)."""

    inputs = (3, 4)
    axes: ClassVar[str]
    weight_order: ClassVar[tuple[int, ...]]
    """The transposition that takes the weights to (*kernel, in, out)."""

    @classmethod
    def check(cls, attributes):
        windows.check_window(attributes, cls.axes)
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        shape, weights, x, bias = (*inputs, None)[:4]
        rank = len(cls.axes) + 2
        dtype = linear.infer_dtype(cls.name, x, weights, bias)
        require_dtype(cls.name, "output shape", shape, INTEGERS)
        require(shape.shape in (None, (rank,), (None,)), f"the output shape is {shape}, not {rank} numbers")
        require(weights.rank in (None, rank), f"weights are {weights}, not of rank {rank}")
        require(x.rank in (None, rank), f"the input is {x}, not of rank {rank}")
        *kernel, depth, out = [(weights.shape or (None,) * rank)[i] for i in cls.weight_order]
        batch, *size, channels = x.shape or (None,) * rank
        require(None in (depth, channels) or depth == channels, f"input {x} does not fit weights {weights}")
        linear.infer_bias(bias, out)
        if values[0] is None:
            return [TensorType((batch, *(None,) * len(cls.axes), out), dtype)]
        given = tuple(int(d) for d in values[0])
        require(min(given) >= 0, f"the output shape is {given}")
        for have, want in ((batch, given[0]), (out, given[-1])):
            require(have in (None, want), f"the output shape {given} does not fit input {x} and weights {weights}")
        back = windows.output_size(attributes, cls.axes, given[1:-1], kernel)
        for n, b in zip(size, back, strict=True):
            require(None in (n, b) or n == b, f"an output of {given} would come from an input of {back}, not {x}")
        return [TensorType(given, dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return linear.macs(inputs[1], inputs[2])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        shape = tuple(int(d) for d in arrays[0])
        bias = arrays[3] if len(arrays) > 3 else None
        x = linear.centred(cls.name, "input", arrays[2], inputs[2])
        weights = linear.centred(cls.name, "weights", arrays[1], inputs[1]).transpose(cls.weight_order)
        acc = scatter(attributes, cls.axes, x, weights, shape[1:-1])
        out_axis = cls.weight_order[-1]
        result = linear.finish(cls.name, attributes, acc, bias, inputs[2], inputs[1], outputs[0], channel_axis=out_axis)
        return [result]


def scatter(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Each input pixel times the kernel, added up where they overlap.

    weights (*kernel, in, out) -> (batch, *size, out).
    """
    kernel, out = weights.shape[:-2], weights.shape[-1]
    dtype = linear.exact_dtype(x, weights, tuple(range(weights.ndim - 1)))
    values, result = x.astype(dtype), np.zeros((x.shape[0], *size, out), dtype)
    # The windows of the convolution that would turn this output into this input: where tap k of window i lies.
    where = windows.coordinates(attributes, axes, size, kernel, x.shape[1:-1])
    samples = np.arange(x.shape[0])
    for tap in np.ndindex(*kernel):
        targets = [coordinate[:, k] for coordinate, k in zip(where, tap, strict=True)]
        sources = [np.flatnonzero((t >= 0) & (t < n)) for t, n in zip(targets, size, strict=True)]
        targets = [t[s] for t, s in zip(targets, sources, strict=True)]
        result[np.ix_(samples, *targets)] += values[np.ix_(samples, *sources)] @ weights[tap].astype(dtype)
    return result.astype(x.dtype)
