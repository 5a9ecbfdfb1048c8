"""Weights, bias and multipliers in the order in which product kernels read them (see matmul_parameters)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from runtime.lowering.base import empty_aligned


def panel_count(channels: int, width: int) -> int:
    return -(-channels // width)


class Matrix(Protocol):
    """(out, depth) weights: an array, or what makes its rows when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, rows: slice, /) -> np.ndarray: ...


def pack(
    weights: Matrix,
    groups: int,
    width: int,
    shape: tuple[int, ...],
    arrange: Callable[[np.ndarray], np.ndarray],
    multiple: int = 1,
) -> np.ndarray:
    """(groups, panels, *shape), aligned: what `arrange` makes of each panel's (width, depth).

    The depth is padded with zeros to a `multiple`, the last panel of a group too. Rows of one panel at a time are asked
    for: what is stored in fewer bits is never there as a whole but in this order.
    """
    out, depth = weights.shape
    channels = out // groups
    panels = panel_count(channels, width)
    packed = empty_aligned((groups, panels, *shape), weights.dtype)
    rows = np.zeros((width, round_up(depth, multiple)), weights.dtype)
    for group in range(groups):
        for panel in range(panels):
            first, count = group * channels + panel * width, min(width, channels - panel * width)
            rows[:count, :depth] = weights[first : first + count]
            rows[count:] = 0
            packed[group, panel] = arrange(rows)
    return packed


def pack_panels(weights: Matrix, groups: int, width: int) -> np.ndarray:
    """(out, depth) float32 -> (groups, panels, depth, width), channels innermost, zeros beyond the last one."""
    return pack(weights, groups, width, (weights.shape[1], width), lambda rows: rows.T)


def pack_panels_of_quads(
    weights: Matrix, groups: int, width: int, order: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """(out, depth) int8 -> (groups, panels, depth / 4, width, 4), depth padded with zeros to a multiple of 4.

    order: which of a panel's channels comes where.
    """
    return _pack_panels_of(4, weights, groups, width, order)


def pack_panels_of_pairs(weights: Matrix, groups: int, width: int) -> np.ndarray:
    """(out, depth) int8 -> (groups, panels, depth / 2, width, 2), depth padded with zeros to a multiple of 2."""
    return _pack_panels_of(2, weights, groups, width, slice(None))


def _pack_panels_of(together: int, weights: Matrix, groups: int, width: int, order: np.ndarray | slice) -> np.ndarray:
    shape = (-(-weights.shape[1] // together), width, together)

    def arrange(rows: np.ndarray) -> np.ndarray:
        return rows[order].reshape(width, -1, together).swapaxes(0, 1)

    return pack(weights, groups, width, shape, arrange, together)


def pack_channels(values: np.ndarray, groups: int, width: int) -> np.ndarray:
    """(out,) -> (groups, panels * width), zeros beyond the last channel of a group."""
    channels = values.size // groups
    padded = np.zeros((groups, panel_count(channels, width) * width), values.dtype)
    padded[:, :channels] = values.reshape(groups, channels)
    return padded


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
