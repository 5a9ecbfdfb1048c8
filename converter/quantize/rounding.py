"""Rounding weights so that the errors of a channel cancel on the inputs that it gets.

Neighbouring inputs of an image or a layer are alike, so that rounding errors, each small, add up where weights are
rounded one by one. Here each weight makes up for the errors of those before it, as far as their inputs move together,
so that the variance of the output's error is small. What is left of its mean goes into the bias.

Of a covariance H = R R' with R upper triangular, the variance of the error of a channel is |R' e|^2 for weight errors
e. Its terms depend on the first weight, on the first two, and so on, so that each can be made small in turn: LDLQ of
J. Chee et al., "QuIP: 2-Bit Quantization of Large Language Models With Guarantees", NeurIPS 2023, which gives the same
integers as GPTQ.
"""

from __future__ import annotations

import numpy as np

from converter.quantize import matrices
from converter.quantize.moments import Moments

DAMPING = 0.01  # of the mean variance, added to each: what the sample does not show is taken to be noise of that size
PANEL = 32  # columns that are factored at once
LAZY = 16  # columns whose errors are gathered before all that follow are told of them


def round_compensated(weights: np.ndarray, scale: np.ndarray, moments: Moments, limit: int) -> np.ndarray:
    """int8 weights of the same shape. scale: of each output channel. Zeros stay zeros."""
    matrix = matrices.of_weights(moments.op, weights, moments.groups)
    steps = matrices.of_weights(moments.op, scale, moments.groups)
    result = np.empty(matrix.shape, np.int8)
    for block, covariance in moments.covariances():
        # Columns first, so that what is done for each is done to numbers side by side.
        part = np.ascontiguousarray((matrix[:, :, block] / steps[:, :, np.newaxis]).transpose(0, 2, 1))
        result[:, :, block] = _round_block(part, _feedback(covariance), limit).transpose(0, 2, 1)
    return matrices.to_weights(moments.op, result, weights.shape)


def mean_error(weights: np.ndarray, quantized: np.ndarray, moments: Moments) -> np.ndarray:
    """How far quantized weights lower the mean of each output channel: float64 (channels,)."""
    errors = matrices.of_weights(moments.op, weights.astype(np.float64) - quantized, moments.groups)
    return (errors @ moments.mean()[:, :, np.newaxis]).reshape(-1)


def _feedback(covariance: np.ndarray) -> np.ndarray:
    """(groups, k, j): what an error of column j adds to column k > j; nothing is meant by the rest."""
    variance = np.diagonal(covariance, axis1=1, axis2=2).mean(axis=1)
    damping = np.where(variance > 0, DAMPING * variance, 1)
    damped = covariance + damping[:, np.newaxis, np.newaxis] * np.eye(covariance.shape[1])
    # With the order of the columns reversed, a lower triangular factor becomes an upper one.
    upper = _cholesky(damped[:, ::-1, ::-1].copy())[:, ::-1, ::-1]
    # Only what is below the diagonal is used.
    return np.ascontiguousarray((upper / np.diagonal(upper, axis1=1, axis2=2)[:, np.newaxis]).transpose(0, 2, 1))


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """The lower triangular factor, in the matrix's place; what is above the diagonal is not cleared.

    In panels that LAPACK takes whole: on a busy machine its threads would cost many times what they save.
    """
    for start in range(0, matrix.shape[1], PANEL):
        done = slice(start, start + PANEL)
        rest = slice(start + PANEL, None)
        corner = np.linalg.cholesky(matrix[:, done, done])
        below = matrix[:, rest, done] @ np.linalg.inv(corner).transpose(0, 2, 1)
        matrix[:, done, done], matrix[:, rest, done] = corner, below
        matrix[:, rest, rest] -= below @ below.transpose(0, 2, 1)
    return matrix


def _round_block(weights: np.ndarray, feedback: np.ndarray, limit: int) -> np.ndarray:
    """weights: in steps, (groups, columns, out). Returns the integers."""
    groups, columns, out = weights.shape
    integers, errors = np.empty_like(weights), np.empty_like(weights)
    for start in range(0, columns, LAZY):
        end = min(start + LAZY, columns)
        told = feedback[:, start:end, :start] @ errors[:, :start]
        for k in range(start, end):
            wanted = weights[:, k] + told[:, k - start]
            wanted += (feedback[:, k : k + 1, start:k] @ errors[:, start:k]).reshape(groups, out)
            rounded = np.rint(wanted)
            np.clip(rounded, -limit, limit, out=rounded)
            rounded[weights[:, k] == 0] = 0
            integers[:, k] = rounded
            np.subtract(weights[:, k], rounded, out=errors[:, k])
    return integers
