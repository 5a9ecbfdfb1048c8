"""CONV_3D_TRANSPOSE: (output_shape (5,), weights DHWOI, x NDHWC, optional bias O) -> NDHWC."""

from __future__ import annotations

from schema.ops.attributes import Conv3DAttributes
from schema.ops.transposed_convolution import TransposedConvolution


class Conv3DTranspose(TransposedConvolution):
    name = "CONV_3D_TRANSPOSE"
    Attributes = Conv3DAttributes
    axes = "dhw"
    weight_order = (0, 1, 2, 4, 3)
