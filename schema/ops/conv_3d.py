"""CONV_3D: (x NDHWC, weights DHWIO, optional bias O) -> NDHWC. Groups are what the channels say: in = I * groups.

int8: as CONV_2D, with weights' scales along axis 4.
"""

from __future__ import annotations

from schema.graph import TensorType
from schema.ops import convolution, linear, windows
from schema.ops.attributes import Conv3DAttributes, check_activation
from schema.ops.base import Op, require


class Conv3D(Op):
    name = "CONV_3D"
    Attributes = Conv3DAttributes
    inputs = (2, 3)

    @classmethod
    def check(cls, attributes):
        windows.check_window(attributes, "dhw")
        check_activation(attributes)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, weights, bias = (*inputs, None)[:3]
        dtype = linear.infer_dtype(cls.name, x, weights, bias)
        require(weights.rank in (None, 5), f"weights are {weights}, not DHWIO")
        require(x.rank in (None, 5), f"the input is {x}, not NDHWC")
        *kernel, per_group, out = weights.shape or (None,) * 5
        batch, *size, channels = x.shape or (None,) * 5
        linear.infer_bias(bias, out)
        convolution.infer_groups(channels, per_group, out)
        return [TensorType((batch, *windows.output_size(attributes, "dhw", size, kernel), out), dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return linear.macs(inputs[1], outputs[0])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        bias = arrays[2] if len(arrays) > 2 else None
        x = linear.centred(cls.name, "input", arrays[0], inputs[0])
        weights = linear.centred(cls.name, "weights", arrays[1], inputs[1])
        acc = convolution.accumulate(attributes, "dhw", x, weights, x.shape[4] // weights.shape[3])
        return [linear.finish(cls.name, attributes, acc, bias, inputs[0], inputs[1], outputs[0], channel_axis=4)]
