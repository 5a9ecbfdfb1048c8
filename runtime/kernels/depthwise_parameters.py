"""Parameter blocks of the depthwise convolutions (no numba here).

A tile is one row of output pixels. Weights are (kernel_h, kernel_w, channels), bias and multipliers (channels,), the
channels being those of the output, padded with zeros to a multiple of 16.
"""

from runtime.kernels.parameters import ParameterBlock

TABLE_BYTES = 256  # of addresses, before zeros for all channels: what the float32 kernel for 3x3 needs as its room

_DEPTHWISE = [
    "input",
    "weights",
    "bias",
    "output",
    "channels",  # of the output
    "multiplier",  # output channels for each of the input
    *[f"{what}_{axis}" for what in ("in", "kernel", "stride", "dilation", "pad") for axis in "hw"],
    "out_h",
    "out_w",
]

DEPTHWISE_F32 = ParameterBlock("DEPTHWISE_F32", [*_DEPTHWISE, "low", "high"], floats=["low", "high"])
# Weights in blocks of 64 channels, in lane order: [kernel_w][quads of kernel_h][4 vectors][16 channels][4 taps].
DEPTHWISE_QUADS_I8 = ParameterBlock(
    "DEPTHWISE_QUADS_I8",
    [*[slot for slot in _DEPTHWISE if slot != "bias"], "input_zero", "rule", "factors", "zero_point", "low", "high"],
)
DEPTHWISE_I8 = ParameterBlock(
    "DEPTHWISE_I8",
    [*_DEPTHWISE, "input_zero", "rule", "multipliers", "shifts", "zero_point", "low", "high"],
)
