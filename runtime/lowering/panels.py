"""Weights, bias and multipliers in the order in which product kernels read them (see matmul_parameters)."""

from __future__ import annotations

import numpy as np


def panel_count(channels: int, width: int) -> int:
    return -(-channels // width)


def pack_panels(weights: np.ndarray, groups: int, width: int) -> np.ndarray:
    """(out, depth) float32 -> (groups, panels, depth, width), channels innermost, zeros beyond the last one."""
    out, depth = weights.shape
    channels = out // groups
    panels = panel_count(channels, width)
    padded = np.zeros((groups, panels * width, depth), weights.dtype)
    padded[:, :channels] = weights.reshape(groups, channels, depth)
    return np.ascontiguousarray(padded.reshape(groups, panels, width, depth).transpose(0, 1, 3, 2))


def pack_panels_of_quads(weights: np.ndarray, groups: int, width: int) -> np.ndarray:
    """(out, depth) int8 -> (groups, panels, depth / 4, width, 4), depth padded with zeros to a multiple of 4."""
    return _pack_panels_of(4, weights, groups, width)


def pack_panels_of_pairs(weights: np.ndarray, groups: int, width: int) -> np.ndarray:
    """(out, depth) int8 -> (groups, panels, depth / 2, width, 2), depth padded with zeros to a multiple of 2."""
    return _pack_panels_of(2, weights, groups, width)


def _pack_panels_of(together: int, weights: np.ndarray, groups: int, width: int) -> np.ndarray:
    depth = round_up(weights.shape[1], together)
    padded = np.zeros((weights.shape[0], depth), np.int8)
    padded[:, : weights.shape[1]] = weights
    panels = pack_panels(padded, groups, width)
    return np.ascontiguousarray(panels.reshape(*panels.shape[:2], -1, together, width).swapaxes(-1, -2))


def pack_channels(values: np.ndarray, groups: int, width: int) -> np.ndarray:
    """(out,) -> (groups, panels * width), zeros beyond the last channel of a group."""
    channels = values.size // groups
    padded = np.zeros((groups, panel_count(channels, width) * width), values.dtype)
    padded[:, :channels] = values.reshape(groups, channels)
    return padded


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
