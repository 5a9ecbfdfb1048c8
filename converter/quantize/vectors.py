"""Biases and channel scales rounded to a grid: once weights take a bit each, float32 vectors are a fifth of a file."""

from __future__ import annotations

import math

import numpy as np

from schema.errors import InputError
from schema.graph import Constant, Graph, Tensor, all_nodes

FEWEST_BITS, MOST_BITS = 4, 8
FLOAT32 = np.dtype(np.float32)
MOST_PARTS = 8  # of the smallest value, tried as the step of a grid
CLOSE = 1e-6  # relative: float32 products of one step


def check_bits(bits: int) -> None:
    """Raise InputError for a number of bits that vectors cannot have."""
    if bits not in range(FEWEST_BITS, MOST_BITS + 1):
        raise InputError(f"vector_bits is {bits!r}: give a whole number of bits from {FEWEST_BITS} to {MOST_BITS}")


def round_vectors(graph: Graph, bits: int) -> list[Tensor]:
    """Round float32 vectors, and the channel scales of kernels, to multiples of a power of two that fit `bits`.

    A vector is a constant with more than one element along one axis only. Each has a power of two of its own, so that
    numbers are off by 1 / (2**(bits - 1) - 1) of its largest one at most. The step of kernels that have a grid of their
    own (`xnn_tf.RateCallback`) goes into their channel scales before those are rounded. Returns what was changed.
    """
    changed = []
    for tensor in dict.fromkeys(t for node in all_nodes(graph) for t in node.inputs if t is not None):
        if tensor.constant is None or tensor.dtype != FLOAT32 or tensor.quantization is not None:
            continue
        rounded = _rounded(tensor.constant, bits)
        if rounded is not None:
            tensor.set_constant(rounded)
            changed.append(tensor)
    return changed


def _rounded(constant: Constant, bits: int) -> Constant | None:
    if constant.channel_scale is not None:
        whole, step = _grid(np.asarray(constant.values))
        scale = np.asarray(constant.channel_scale, np.float32) * np.float32(step)
        return Constant(whole, to_grid(scale, bits), constant.axis)
    values = np.asarray(constant.values)
    if values.dtype.kind == "f" and values.size > 1 and max(values.shape) == values.size:
        return Constant(to_grid(values.astype(np.float32), bits))
    return None


def to_grid(numbers: np.ndarray, bits: int) -> np.ndarray:
    """The nearest multiples of the smallest power of two of which the largest number is 2**(bits - 1) - 1 at most."""
    largest = float(np.abs(numbers).max(initial=0))
    if not 0 < largest < math.inf:
        return numbers
    most = 2 ** (bits - 1) - 1
    step = 2.0 ** math.ceil(math.log2(largest / most))
    # A largest number that rounds down to `most` may have half the step.
    if np.rint(largest / (step / 2)) <= most:
        step /= 2
    return (np.rint(numbers / step) * step).astype(np.float32) + np.float32(0)  # no -0


def _grid(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Values of few levels as int8 and their step; others as they are, with a step of 1."""
    if values.dtype.kind != "f":
        return values, 1.0
    magnitudes = np.unique(np.abs(values))
    magnitudes = magnitudes[magnitudes > 0]
    if not 0 < magnitudes.size <= 127 or not np.isfinite(magnitudes).all():
        return values, 1.0
    for parts in range(1, MOST_PARTS + 1):
        step = float(magnitudes[0]) / parts
        whole = np.rint(magnitudes / step)
        if whole[-1] <= 127 and np.allclose(whole * step, magnitudes, rtol=CLOSE, atol=0):
            step = float(magnitudes[-1] / whole[-1])
            return np.rint(values / step).astype(np.int8), step
    return values, 1.0
