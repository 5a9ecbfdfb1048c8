"""CONV_2D: (x NHWC, weights OHWI, optional bias O) -> NHWC. Groups are what the channels say: in = I * groups.

int8: acc = sum w * (x - zero_point) + bias, padding adds nothing; requantized per output channel (TFLite integer_ops/conv.h).
"""

from __future__ import annotations

import numpy as np

from schema.ops.attributes import Conv2DAttributes, check_activation
from schema.ops.base import Op, require
from schema.ops.convolution import accumulate, check_window, finish, infer_bias, output_size
from schema.graph import TensorType


class Conv2D(Op):
    name = "CONV_2D"
    Attributes = Conv2DAttributes
    inputs = (2, 3)

    @classmethod
    def check(cls, attributes):
        check_window(attributes, "hw")
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, weights = inputs[0], inputs[1]
        require(weights.rank == 4, f"weights are {weights}, not OHWI")
        out = weights.shape[0]
        infer_bias(inputs, out)
        if x.shape is None:
            return [TensorType((None, None, None, out), x.dtype)]
        require(x.rank == 4, f"the input is {x}, not NHWC")
        if None not in (x.shape[3], weights.shape[3], out):
            channels, per_group = x.shape[3], weights.shape[3]
            require(per_group > 0 and channels % per_group == 0 and out % (channels // per_group) == 0,
                    f"{channels} input channels do not fit weights {weights}")
        return [TensorType((x.shape[0], *output_size(attributes, "hw", x.shape[1:3], weights.shape[1:3]), out), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, weights = arrays[0], arrays[1]
        groups = x.shape[3] // weights.shape[3]
        acc = accumulate(attributes, "hw", x, np.moveaxis(weights, 0, -1), inputs, groups)
        return [finish(attributes, acc, arrays, inputs, outputs[0])]
