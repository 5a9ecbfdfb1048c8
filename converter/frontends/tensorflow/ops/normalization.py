"""Batch normalization: two vectors, a multiplication and an addition."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.graph import Tensor


@reads("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(reading: Reading) -> Result:
    """x * gamma / sqrt(variance + epsilon) + (beta - mean * gamma / sqrt(variance + epsilon)); the first output alone.

    In training, mean and variance are the batch's own: tf_keras computes LayerNormalization in this way, the other
    axes folded into channels.
    """
    x, gamma, beta, mean, variance = reading.tensors()
    if reading.attribute("is_training"):
        mean, variance = _statistics(reading, x)
    epsilon = reading.constant(reading.attribute("epsilon"), np.float32)
    factor = reading.emit("MUL", gamma, reading.emit("RSQRT", reading.emit("ADD", variance, epsilon)))
    offset = reading.emit("SUB", beta, reading.emit("MUL", mean, factor))
    return [reading.emit("ADD", reading.emit("MUL", x, _aligned(reading, factor, x)), _aligned(reading, offset, x))]


@reads("L2Loss")
def l2_loss(reading: Reading) -> Result:
    x = reading.tensor(0)
    axes = reading.constant(np.arange(reading.rank(x)), np.int32)
    total = reading.emit("SUM", reading.emit("SQUARE", x), axes, keep_dims=False)
    return reading.emit("MUL", total, reading.constant(0.5, np.float32))


def _statistics(reading: Reading, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel."""
    rank = reading.rank(x)
    channel = 1 if reading.is_channels_first() else rank - 1
    axes = reading.constant([axis for axis in range(rank) if axis != channel], np.int32)
    mean = reading.emit("MEAN", x, axes, keep_dims=False)
    squares = reading.emit("SQUARED_DIFFERENCE", x, _aligned(reading, mean, x))
    return mean, reading.emit("MEAN", squares, axes, keep_dims=False)


def _aligned(reading: Reading, vector: Tensor, x: Tensor) -> Tensor:
    if not reading.is_channels_first():
        return vector
    shape = [-1 if axis == 1 else 1 for axis in range(reading.rank(x))]
    return reading.emit("RESHAPE", vector, reading.constant(shape, np.int32))
