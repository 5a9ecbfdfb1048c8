"""Convolutions and matrix products. Weights are laid out as the schema's."""

from __future__ import annotations

from typing import Any

import numpy as np

from converter.frontends.tflite.dequantized import real_weights
from converter.frontends.tflite.reading import Reading, reads
from schema.errors import UnsupportedError
from schema.graph import Tensor


def _window(options: dict[str, Any], axes: str = "hw") -> dict[str, Any]:
    attributes = {"padding": options["padding"]}
    for axis in axes:
        attributes[f"stride_{axis}"] = options[f"stride_{axis}"]
        attributes[f"dilation_{axis}"] = options.get(f"dilation_{axis}_factor", 1)
    return attributes


def _weights(weights: Tensor, x: Tensor, may_be_shifted: bool = False) -> Tensor:
    """As the op computes with them. Raises UnsupportedError for int8 with a zero point, which the specification does
    not have and TFLite's kernels refuse or overlook.
    """
    quantization = weights.quantization
    shifted = weights.dtype == np.int8 and quantization is not None and quantization.zero_point.any()
    if shifted and (not may_be_shifted or quantization.per_channel):
        raise UnsupportedError(f"int8 weights '{weights.name}' have a zero point that is not 0")
    return real_weights(weights, x)


def _bias(bias: Tensor | None) -> Tensor | None:
    """Without its scales: they are those of the input times those of the weights, and nothing reads them."""
    if bias is not None and bias.is_constant:
        bias.quantization = None
    return bias


def _convolve(reading: Reading, op: str, axes: str = "hw") -> None:
    x, weights, bias = reading.operands(2, 3)
    attributes = _window(reading.options, axes) | reading.activation()
    reading.emit(op, [x, _weights(weights, x), _bias(bias)], **attributes)


@reads("CONV_2D", options="Conv2DOptions")
def conv_2d(reading: Reading) -> None:
    _convolve(reading, "CONV_2D")


@reads("DEPTHWISE_CONV_2D", options="DepthwiseConv2DOptions")
def depthwise_conv_2d(reading: Reading) -> None:
    """The weights' channels say what the multiplier is: LiteRT does not look at the option either."""
    _convolve(reading, "DEPTHWISE_CONV_2D")


@reads("CONV_3D", options="Conv3DOptions")
def conv_3d(reading: Reading) -> None:
    _convolve(reading, "CONV_3D", "dhw")


def _transposed(reading: Reading, op: str, axes: str) -> None:
    size, weights, x, bias = reading.operands(3, 4)
    attributes = _window(reading.options, axes) | reading.activation()
    reading.emit(op, [size, _weights(weights, x), x, _bias(bias)], **attributes)


@reads("TRANSPOSE_CONV", options="TransposeConvOptions")
def transpose_conv(reading: Reading) -> None:
    _transposed(reading, "TRANSPOSE_CONV", "hw")


@reads("CONV_3D_TRANSPOSE", options="Conv3DOptions")
def conv_3d_transpose(reading: Reading) -> None:
    _transposed(reading, "CONV_3D_TRANSPOSE", "dhw")


@reads("FULLY_CONNECTED", options="FullyConnectedOptions")
def fully_connected(reading: Reading) -> None:
    x, weights, bias = reading.operands(2, 3)
    if reading.options["weights_format"] != "DEFAULT":
        raise UnsupportedError(f"weights in the format {reading.options['weights_format']} are not supported")
    attributes = {"keep_num_dims": reading.options["keep_num_dims"]} | reading.activation()
    reading.emit("FULLY_CONNECTED", [x, _weights(weights, x, True), _bias(bias)], **attributes)


@reads("BATCH_MATMUL", options="BatchMatMulOptions")
def batch_matmul(reading: Reading) -> None:
    a, b = reading.operands(2)
    attributes = {name: reading.options[name] for name in ("adj_x", "adj_y")}
    reading.emit("BATCH_MATMUL", [a, real_weights(b, a)], **attributes)
