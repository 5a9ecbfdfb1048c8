"""Rounding weights so that the errors of a channel cancel on the inputs that it gets.

Neighbouring inputs of an image or a layer are alike, so that rounding errors, each small, add up where weights are
rounded one by one. Here the error of each weight is passed on to the weights that are not rounded yet, as far as
their inputs move together: the update of E. Frantar et al., "GPTQ: Accurate Post-Training Quantization for
Generative Pre-trained Transformers", ICLR 2023, which is that of Optimal Brain Surgeon in a fixed order. What is
left changes the mean of the output, and goes into the bias.
"""

from __future__ import annotations

import numpy as np

from converter.quantize import matrices
from converter.quantize.moments import Moments

DAMPING = 0.01  # of the mean variance, added to each: what the sample does not show is taken to be noise of that size
LAZY = 32  # columns after which the errors are passed on to all that follow


def round_compensated(weights: np.ndarray, scale: np.ndarray, moments: Moments, limit: int) -> np.ndarray:
    """int8 weights of the same shape. scale: of each output channel. Zeros stay zeros."""
    matrix = matrices.of_weights(moments.op, weights, moments.groups)
    steps = matrices.of_weights(moments.op, scale, moments.groups)
    result = np.empty(matrix.shape, np.int8)
    for block, covariance in moments.covariances():
        part = matrix[:, :, block].astype(np.float64) / steps[:, :, np.newaxis]
        result[:, :, block] = _round_block(part, _passed_on(covariance), limit)
    return matrices.to_weights(moments.op, result, weights.shape)


def mean_error(weights: np.ndarray, quantized: np.ndarray, moments: Moments) -> np.ndarray:
    """How far quantized weights lower the mean of each output channel: float64 (channels,)."""
    errors = matrices.of_weights(moments.op, weights.astype(np.float64) - quantized, moments.groups)
    return (errors @ moments.mean()[:, :, np.newaxis]).reshape(-1)


def _passed_on(covariance: np.ndarray) -> np.ndarray:
    """The upper triangular factor U of the inverse covariance, inverse = U' U, for each group.

    Row j of U, divided by its diagonal element, is how an error of column j is made up for by the later ones.
    """
    variance = np.diagonal(covariance, axis1=1, axis2=2).mean(axis=1)
    damping = np.where(variance > 0, DAMPING * variance, 1)
    damped = covariance + damping[:, np.newaxis, np.newaxis] * np.eye(covariance.shape[1])
    # With the order of the columns reversed, a lower triangular factor becomes an upper one.
    upper = np.linalg.cholesky(damped[:, ::-1, ::-1])[:, ::-1, ::-1]
    return np.linalg.inv(upper)


def _round_block(weights: np.ndarray, passed_on: np.ndarray, limit: int) -> np.ndarray:
    """weights: in steps, (groups, out, columns); changed while they are rounded."""
    zero = weights == 0
    columns = weights.shape[2]
    for start in range(0, columns, LAZY):
        end = min(start + LAZY, columns)
        errors = np.empty((*weights.shape[:2], end - start))
        for j in range(start, end):
            rounded = np.clip(np.rint(weights[:, :, j]), -limit, limit)
            rounded[zero[:, :, j]] = 0
            error = (weights[:, :, j] - rounded) / passed_on[:, j, j][:, np.newaxis]
            weights[:, :, j] = rounded
            weights[:, :, j + 1 : end] -= error[:, :, np.newaxis] * passed_on[:, np.newaxis, j, j + 1 : end]
            errors[:, :, j - start] = error
        weights[:, :, end:] -= errors @ passed_on[:, start:end, end:]
    return weights
