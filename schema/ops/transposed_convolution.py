"""What transposed convolutions share: the gradient of a convolution by its input, whose size is given as an operand.

Inputs are (output_shape, weights, x, optional bias), as in TFLite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from schema.graph import TensorType
from schema.ops import convolution
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
        convolution.check_window(attributes, cls.axes)
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        shape, weights, x, bias = (*inputs, None)[:4]
        rank = len(cls.axes) + 2
        dtype = convolution.infer_dtype(cls.name, x, weights, bias)
        require_dtype(cls.name, "output shape", shape, INTEGERS)
        require(shape.shape in (None, (rank,), (None,)), f"the output shape is {shape}, not {rank} numbers")
        require(weights.rank in (None, rank), f"weights are {weights}, not of rank {rank}")
        require(x.rank in (None, rank), f"the input is {x}, not of rank {rank}")
        *kernel, depth, out = [(weights.shape or (None,) * rank)[i] for i in cls.weight_order]
        batch, *size, channels = x.shape or (None,) * rank
        require(None in (depth, channels) or depth == channels, f"input {x} does not fit weights {weights}")
        convolution.infer_bias(bias, out)
        if values[0] is None:
            return [TensorType((batch, *(None,) * len(cls.axes), out), dtype)]
        given = tuple(int(d) for d in values[0])
        require(min(given) >= 0, f"the output shape is {given}")
        for have, want in ((batch, given[0]), (out, given[-1])):
            require(have in (None, want), f"the output shape {given} does not fit input {x} and weights {weights}")
        back = convolution.output_size(attributes, cls.axes, given[1:-1], kernel)
        for n, b in zip(size, back, strict=True):
            require(None in (n, b) or n == b, f"an output of {given} would come from an input of {back}, not {x}")
        return [TensorType(given, dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        shape = tuple(int(d) for d in arrays[0])
        bias = arrays[3] if len(arrays) > 3 else None
        x = convolution.centred(cls.name, "input", arrays[2], inputs[2])
        weights = convolution.centred(cls.name, "weights", arrays[1], inputs[1]).transpose(cls.weight_order)
        acc = scatter(attributes, cls.axes, x, weights, shape[1:-1])
        return [convolution.finish(cls.name, attributes, acc, bias, inputs[2], inputs[1], outputs[0])]


def scatter(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Each input pixel times the kernel, added up where they overlap.

    weights (*kernel, in, out) -> (batch, *size, out).
    """
    kernel, out = weights.shape[:-2], weights.shape[-1]
    strides = convolution.along(attributes, "stride", axes)
    dilations = convolution.along(attributes, "dilation", axes)
    pads = convolution.pad_amounts(attributes, axes, size, kernel)
    dtype = convolution.exact_dtype(x, weights, tuple(range(weights.ndim - 1)))
    # Long enough for every contribution and for outputs that get none; cropped to the output at the end.
    full = [
        max((n - 1) * s + convolution.extent(k, d), before + wanted)
        for n, s, k, d, (before, _), wanted in zip(x.shape[1:-1], strides, kernel, dilations, pads, size, strict=True)
    ]
    result = np.zeros((x.shape[0], *full, out), dtype)
    values = x.astype(dtype)
    for tap in np.ndindex(*kernel):
        starts = [t * d for t, d in zip(tap, dilations, strict=True)]
        ends = [start + (n - 1) * s + 1 for start, n, s in zip(starts, x.shape[1:-1], strides, strict=True)]
        at = (slice(None), *map(slice, starts, ends, strides))
        result[at] += values @ weights[tap].astype(dtype)
    crop = (slice(None), *(slice(before, before + n) for (before, _), n in zip(pads, size, strict=True)))
    return result[crop].astype(x.dtype)
