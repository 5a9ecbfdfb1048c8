"""Convolutions. TensorFlow's weights are HWIO, the schema's OHWI."""

from __future__ import annotations

from typing import Any

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.errors import UnsupportedError
from schema.graph import Tensor

AXES_2D, AXES_3D = "hw", "dhw"


def window(reading: Reading, axes: str) -> dict[str, Any]:
    """Strides, dilations, padding and pads as attributes."""
    attributes = reading.padding()
    for name, kind in (("strides", "stride"), ("dilations", "dilation")):
        numbers = reading.spatial(name) or [1] * len(axes)
        attributes |= {f"{kind}_{axis}": number for axis, number in zip(axes, numbers, strict=True)}
    return attributes


@reads("Conv2D")
def conv_2d(reading: Reading) -> Result:
    weights = reading.transpose(reading.tensor(1), 3, 0, 1, 2)
    x = reading.channels_last(reading.tensor(0))
    return reading.restored(reading.emit("CONV_2D", x, weights, None, **window(reading, AXES_2D)))


@reads("DepthwiseConv2dNative")
def depthwise_conv_2d(reading: Reading) -> Result:
    """HWCM -> 1HW(C*M): output channel k * M + q is input channel k with its q-th filter."""
    weights = reading.tensor(1)
    shape = reading.shape(weights)
    if shape is None or None in shape:
        raise UnsupportedError("depthwise weights of unknown shape are not supported")
    height, width, channels, multiplier = shape
    flat = reading.constant([1, height, width, channels * multiplier], np.int32)  # type: ignore[operator]
    weights = reading.emit("RESHAPE", weights, flat)
    x = reading.channels_last(reading.tensor(0))
    return reading.restored(reading.emit("DEPTHWISE_CONV_2D", x, weights, None, **window(reading, AXES_2D)))


@reads("Conv2DBackpropInput")
def transpose_conv(reading: Reading) -> Result:
    """The gradient of a convolution is what Keras calls a transposed one. Weights are HW, output, input channels."""
    size, weights, x = reading.tensors()
    if reading.is_channels_first():
        size = reading.emit("GATHER", size, reading.constant([0, 2, 3, 1], np.int32))
    weights = reading.transpose(weights, 2, 0, 1, 3)
    y = reading.emit(
        "TRANSPOSE_CONV", _int32(reading, size), weights, reading.channels_last(x), None, **window(reading, AXES_2D)
    )
    return reading.restored(y)


@reads("Conv3D")
def conv_3d(reading: Reading) -> Result:
    x = reading.channels_last(reading.tensor(0))
    return reading.restored(reading.emit("CONV_3D", x, reading.tensor(1), None, **window(reading, AXES_3D)))


@reads("Conv3DBackpropInputV2")
def conv_3d_transpose(reading: Reading) -> Result:
    size, weights, x = reading.tensors()
    if reading.is_channels_first():
        size = reading.emit("GATHER", size, reading.constant([0, 2, 3, 4, 1], np.int32))
    y = reading.emit(
        "CONV_3D_TRANSPOSE", _int32(reading, size), weights, reading.channels_last(x), None, **window(reading, AXES_3D)
    )
    return reading.restored(y)


def _int32(reading: Reading, tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == np.int32 else reading.emit("CAST", tensor, dtype=np.dtype(np.int32))
