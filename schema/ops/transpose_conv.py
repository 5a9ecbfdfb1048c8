"""TRANSPOSE_CONV: (output_shape (4,), weights OHWI, x NHWC, optional bias O) -> NHWC.

int8: as CONV_2D, requantized per output channel (TFLite integer_ops/transpose_conv.h).
"""

from __future__ import annotations

from schema.ops.attributes import Conv2DAttributes
from schema.ops.transposed_convolution import TransposedConvolution


class TransposeConv(TransposedConvolution):
    name = "TRANSPOSE_CONV"
    Attributes = Conv2DAttributes
    axes = "hw"
    weight_order = (1, 2, 3, 0)
