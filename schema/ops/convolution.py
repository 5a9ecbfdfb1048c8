"""Sums of products over windows, by im2col and matrix products. Layouts are channels-last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schema.ops.base import require
from schema.ops.linear import exact_dtype
from schema.ops.windows import coordinates, static_output_size

BLOCK = 1 << 22
"""How many elements of unrolled windows are held at once."""


def infer_groups(channels: int | None, per_group: int | None, out: int | None) -> None:
    """Raise ShapeError unless the channels are groups of `per_group`, and the outputs as many equal groups."""
    require(per_group is None or per_group > 0, "the weights have no input channels")
    if channels is None or per_group is None:
        return
    require(channels > 0 and channels % per_group == 0, f"{channels} channels are not groups of {per_group}")
    require(out is None or out % (channels // per_group) == 0,
            f"{out} output channels do not split into {channels // per_group} groups")  # fmt: skip


def _pixels(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x as (batch, pixels + 1, channels): the last pixel is zeros and stands for padding."""
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])
    return np.concatenate([flat, np.zeros_like(flat[:, :1])], axis=1, dtype=dtype, casting="unsafe")


def _pixel_numbers(
    attributes: Any, axes: str, size: Sequence[int], kernel: Sequence[int], output: Sequence[int]
) -> np.ndarray:
    """(positions, taps): which pixel each tap meets at each output position; the one after the last is padding."""
    rank, numbers, inside = len(axes), np.zeros((), np.intp), np.ones((), bool)
    for i, coordinate in enumerate(coordinates(attributes, axes, size, kernel, output)):
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = coordinate.shape
        coordinate = coordinate.reshape(shape)
        numbers = numbers * size[i] + coordinate
        inside = inside & (coordinate >= 0) & (coordinate < size[i])
    numbers = np.where(inside, numbers, math.prod(size))
    return numbers.reshape(math.prod(output), math.prod(kernel))


def _blocks(samples: int, positions: int, elements: int) -> Iterator[tuple[slice, slice]]:
    """Slices of (samples, positions) that hold about BLOCK elements, each position having so many of its own."""
    together = BLOCK // max(positions * elements, 1)
    if together:
        yield from ((slice(n, n + together), slice(None)) for n in range(0, samples, together))
        return
    step = max(BLOCK // elements, 1)
    yield from ((slice(n, n + 1), slice(p, p + step)) for n in range(samples) for p in range(0, positions, step))


def accumulate(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """Sums of products, without bias. x and weights are `centred`; weights (*kernel, in / groups, out).

    Returns (batch, *output, out) of x's dtype. im2col and one matrix product a group.
    """
    kernel, (per_group, out) = weights.shape[:-2], weights.shape[-2:]
    if per_group == 1:
        return accumulate_depthwise(attributes, axes, x, weights.reshape(*kernel, groups, out // groups))
    dtype = exact_dtype(x, weights, tuple(range(weights.ndim - 1)))
    size, samples = x.shape[1:-1], x.shape[0]
    output = static_output_size(attributes, axes, size, kernel)
    numbers, pixels = _pixel_numbers(attributes, axes, size, kernel, output), _pixels(x, dtype)
    taps, group_out = math.prod(kernel), out // groups
    matrices = weights.astype(dtype).reshape(taps * per_group, groups, group_out)
    result = np.empty((samples, len(numbers), out), dtype)
    for these, rows in _blocks(samples, len(numbers), taps * x.shape[-1]):
        unrolled = np.take(pixels[these], numbers[rows], axis=1)  # (samples, positions, taps, channels)
        block = result[these, rows]
        for g in range(groups):
            channels = unrolled[..., g * per_group : (g + 1) * per_group].reshape(-1, taps * per_group)
            product = channels @ matrices[:, g]
            block[..., g * group_out : (g + 1) * group_out] = product.reshape(*block.shape[:-1], group_out)
    return result.reshape(samples, *output, out).astype(x.dtype)


def accumulate_depthwise(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As `accumulate`, each channel alone.

    weights (*kernel, channels, multiplier) -> (batch, *output, channels * multiplier).
    """
    kernel, (channels, multiplier) = weights.shape[:-2], weights.shape[-2:]
    dtype = exact_dtype(x, weights, tuple(range(len(kernel))))
    output = static_output_size(attributes, axes, x.shape[1:-1], kernel)
    numbers, pixels = _pixel_numbers(attributes, axes, x.shape[1:-1], kernel, output), _pixels(x, dtype)
    result = np.zeros((x.shape[0], len(numbers), channels, multiplier), dtype)
    for tap, factors in enumerate(weights.astype(dtype).reshape(-1, channels, multiplier)):
        result += np.take(pixels, numbers[:, tap], axis=1)[..., np.newaxis] * factors
    return result.reshape(x.shape[0], *output, channels * multiplier).astype(x.dtype)
