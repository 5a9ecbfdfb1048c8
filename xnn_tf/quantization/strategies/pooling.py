"""Means: of windows, which keep the scale of their input, and of whole images, which have their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from schema.ops.attributes import ResizeAttributes
from schema.ops.resize_bilinear import ONE, neighbours_integer
from xnn_tf.quantization.fake_quantize import in_place_of
from xnn_tf.quantization.integers import half_away, mean_of, real, whole, wide
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class SameScaleStrategy(Strategy):
    """Average pooling and bilinear resizing: rounded to the range of the input."""

    rounds_weights = False

    @classmethod
    def takes(cls, layer: Any) -> bool:
        if getattr(layer, "data_format", "channels_last") != "channels_last":
            return False
        return getattr(layer, "interpolation", "bilinear") == "bilinear"

    def output_range(self, sources: list[Any]) -> Any:
        return sources[0] if sources else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer, source = wrapper.layer, sources[0]
        y = layer.call(inputs)
        if source is None:
            return y
        if not training or source.bits == 16:
            scale, zero_point = scale_of(source)
            means = _means(layer, whole(inputs, scale) + wide(zero_point))
            y = in_place_of(y, real(means - wide(zero_point), scale))
        # The range is the input's, which alone follows the data.
        return source(y, False)


def _means(layer: Any, integers: Any) -> Any:
    """Of integers. Means are halves often, and are rounded away from the integer 0 then (TFLite's AveragePool)."""
    sizes = integers.shape[1:-1]
    if type(layer).__name__ == "AveragePooling3D":
        return half_away(_means_of_volumes(layer, integers))
    if type(layer).__name__ != "UpSampling2D" or None in sizes:
        with_wide_numbers = layer.call(integers)
        return half_away(with_wide_numbers)
    rows, columns = (_blend(int(size), int(factor)) for size, factor in zip(sizes, layer.size, strict=True))
    total = tf.einsum("yh,nhwc,xw->nyxc", rows, integers, columns)
    return half_away(total / ONE**2)


def _means_of_volumes(layer: Any, integers: Any) -> Any:
    """By sums, with kernels of ones: TensorFlow's pooling of volumes knows no float64, but its convolution does."""
    ones = tf.ones((*layer.pool_size, 1, 1), integers.dtype)

    def sums(x: Any) -> Any:
        return tf.nn.conv3d(x, ones, [1, *layer.strides, 1], layer.padding.upper())

    channels_first = tf.transpose(integers, (0, 4, 1, 2, 3))
    shape = tf.shape(channels_first)
    volumes = tf.reshape(channels_first, tf.concat([[-1], shape[2:], [1]], 0))
    means = sums(volumes) / sums(tf.ones_like(volumes[:1]))
    return tf.transpose(tf.reshape(means, tf.concat([shape[:2], tf.shape(means)[1:4]], 0)), (0, 2, 3, 4, 1))


def _blend(size: int, factor: int) -> Any:
    """(size * factor, size): how much of each pixel is in each pixel of a larger line, in steps of 1/1024."""
    target = size * factor
    lower, upper, distance = neighbours_integer(ResizeAttributes(half_pixel_centers=True), size, target)
    weights = np.zeros((target, size))
    lines = np.arange(target)
    np.add.at(weights, (lines, lower), ONE - distance)
    np.add.at(weights, (lines, upper), distance)
    return tf.constant(weights)


@register_strategy
class MeanStrategy(Strategy):
    """Global average pooling: a range of its own."""

    rounds_weights = False

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return layer.data_format == "channels_last"

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        y, source, exact = wrapper.layer.call(inputs, **arguments), sources[0], None
        sizes = inputs.shape[1:-1]
        if not arguments and source is not None and None not in sizes and source.bits == self.ranges["output"].bits:
            scale, _ = scale_of(source)
            count = math.prod(int(size) for size in sizes)
            exact = mean_of(tf.round(wide(y) * count / wide(scale)), count, scale)
        return self.output(y, training, exact)
