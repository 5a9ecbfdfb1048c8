"""DEPTHWISE_CONV_2D: (x NHWC, weights 1HW(C*m), optional bias C*m) -> NHWC.

Output channel k * m + q is filter q of input channel k.
int8: as CONV_2D, with weights' scales along axis 3 (TFLite integer_ops/depthwise_conv.h).
"""

from __future__ import annotations

from schema.graph import TensorType
from schema.ops import convolution, linear, windows
from schema.ops.attributes import Conv2DAttributes, check_activation
from schema.ops.base import Op, require


class DepthwiseConv2D(Op):
    name = "DEPTHWISE_CONV_2D"
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
        require(weights.rank in (None, 4), f"weights are {weights}, not 1HWC")
        require(x.rank in (None, 4), f"the input is {x}, not NHWC")
        one, *kernel, out = weights.shape or (None,) * 4
        require(one in (None, 1), f"weights are {weights}, not 1HWC")
        batch, *size, channels = x.shape or (None,) * 4
        linear.infer_bias(bias, out)
        if channels is not None and out is not None:
            require(0 < channels <= out and out % channels == 0, f"{channels} channels do not fit weights {weights}")
        return [TensorType((batch, *windows.output_size(attributes, "hw", size, kernel), out), dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return linear.macs(inputs[1], outputs[0])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        bias = arrays[2] if len(arrays) > 2 else None
        x = linear.centred(cls.name, "input", arrays[0], inputs[0])
        weights = linear.centred(cls.name, "weights", arrays[1], inputs[1])[0]
        weights = weights.reshape(*weights.shape[:2], x.shape[3], -1)
        acc = convolution.accumulate_depthwise(attributes, "hw", x, weights)
        return [linear.finish(cls.name, attributes, acc, bias, inputs[0], inputs[1], outputs[0], channel_axis=3)]
