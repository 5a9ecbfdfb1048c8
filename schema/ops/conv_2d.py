"""CONV_2D: (x NHWC, weights OHWI, optional bias O) -> NHWC. Groups are what the channels say: in = I * groups.

int8: acc = sum w * (x - zero_point) + bias, where padding adds nothing; requantized per output channel
(TFLite integer_ops/conv.h).
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops import convolution, linear, windows
from schema.ops.attributes import Conv2DAttributes, check_activation
from schema.ops.base import Op, require


class Conv2D(Op):
    name = "CONV_2D"
    Attributes = Conv2DAttributes
    inputs = (2, 3)

    @classmethod
    def check(cls, attributes):
        windows.check_window(attributes, "hw")
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, weights, bias = (*inputs, None)[:3]
        dtype = linear.infer_dtype(cls.name, x, weights, bias)
        require(weights.rank in (None, 4), f"weights are {weights}, not OHWI")
        require(x.rank in (None, 4), f"the input is {x}, not NHWC")
        out, *kernel, per_group = weights.shape or (None,) * 4
        batch, *size, channels = x.shape or (None,) * 4
        linear.infer_bias(bias, out)
        convolution.infer_groups(channels, per_group, out)
        return [TensorType((batch, *windows.output_size(attributes, "hw", size, kernel), out), dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return linear.macs(inputs[1], outputs[0])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        bias = arrays[2] if len(arrays) > 2 else None
        x = linear.centred(cls.name, "input", arrays[0], inputs[0])
        weights = linear.centred(cls.name, "weights", arrays[1], inputs[1])
        groups = x.shape[3] // weights.shape[3]
        acc = convolution.accumulate(attributes, "hw", x, np.moveaxis(weights, 0, -1), groups)
        return [linear.finish(cls.name, attributes, acc, bias, inputs[0], inputs[1], outputs[0])]
