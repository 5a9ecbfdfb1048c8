"""FULLY_CONNECTED: (x (..., in), weights (out, in), optional bias (out,)) -> (..., out), or (elements / in, out).

int8: acc = sum w * (x - zero_point) + bias, requantized per output channel or with one scale. Unlike convolutions it
rounds once, in float64, ties away from zero (TFLite integer_ops/fully_connected.h).
"""

from __future__ import annotations

import math

import numpy as np

from schema.graph import TensorType
from schema.ops import linear
from schema.ops.attributes import FullyConnectedAttributes, check_activation
from schema.ops.base import Op, require


class FullyConnected(Op):
    name = "FULLY_CONNECTED"
    Attributes = FullyConnectedAttributes
    inputs = (2, 3)

    @classmethod
    def check(cls, attributes):
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, weights, bias = (*inputs, None)[:3]
        dtype = linear.infer_dtype(cls.name, x, weights, bias)
        require(weights.rank in (None, 2), f"weights are {weights}, not (out, in)")
        out, depth = weights.shape or (None, None)
        require(depth is None or depth > 0, f"weights {weights} take no inputs")
        linear.infer_bias(bias, out)
        if attributes.keep_num_dims:
            if x.shape is None:
                return [TensorType(None, dtype)]
            require(x.rank > 0, "the input is a scalar")
            require(None in (depth, x.shape[-1]) or x.shape[-1] == depth, f"input {x} does not fit weights {weights}")
            return [TensorType((*x.shape[:-1], out), dtype)]
        if not x.is_static or depth is None:
            return [TensorType((None, out), dtype)]
        elements = math.prod(x.shape)
        require(elements % depth == 0, f"the {elements} elements of {x} are not rows of {depth}")
        return [TensorType((elements // depth, out), dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return linear.macs(inputs[1], outputs[0])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        bias = arrays[2] if len(arrays) > 2 else None
        x = linear.centred(cls.name, "input", arrays[0], inputs[0])
        weights = linear.centred(cls.name, "weights", arrays[1], inputs[1])
        dtype = linear.exact_dtype(x, weights, 1)
        rows = x.reshape(-1, weights.shape[1]).astype(dtype)
        acc = (rows @ weights.astype(dtype).T).astype(x.dtype)
        result = linear.finish(cls.name, attributes, acc, bias, inputs[0], inputs[1], outputs[0], exact=True)
        lead = arrays[0].shape[:-1] if attributes.keep_num_dims else (rows.shape[0],)
        return [np.reshape(result, (*lead, weights.shape[0]))]
