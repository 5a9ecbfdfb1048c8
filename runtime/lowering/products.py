"""Convolutions, transposed ones and dense layers as products of matrices: their operands, windows and tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.lowering.base import LoweringContext
from runtime.lowering.panels import round_up
from schema.ops.windows import along, pad_amounts

BLOCK_ROWS = 96
BLOCK_BYTES = (96 * 1024, 1024 * 1024)  # least and most of gathered rows, which stay in a second-level cache
WEIGHTS_PER_BLOCK = 8  # weights that many times as large as the rows are worth more rows, for which they are read once
WANTED_TILES = 8  # enough for a few workers to share evenly; tiles that share rows gather them again
ROWS_AT_ONCE = 64  # of weights that are looked at
TILE_PRODUCTS = 1 << 16  # what makes taking a tile worth it


@dataclass(frozen=True)
class Operands:
    """Where the operands are, and the weights' order that makes them (out, taps..., in)."""

    x: int
    weights: int
    bias: int
    order: tuple[int, ...]
    axes: str
    transposed: bool = False


OPERANDS = {
    "CONV_2D": Operands(0, 1, 2, (0, 1, 2, 3), "hw"),
    "CONV_3D": Operands(0, 1, 2, (4, 0, 1, 2, 3), "dhw"),
    "TRANSPOSE_CONV": Operands(2, 1, 3, (0, 1, 2, 3), "hw", transposed=True),
    "CONV_3D_TRANSPOSE": Operands(2, 1, 3, (3, 0, 1, 2, 4), "dhw", transposed=True),
    "FULLY_CONNECTED": Operands(0, 1, 2, (0, 1), ""),
}


@dataclass(frozen=True)
class Windows:
    """depth: products per output and group. slots: the kernel's parameters by name."""

    source: int
    out: int
    groups: int
    depth: int
    slots: dict[str, int]

    @property
    def in_memory(self) -> bool:
        return self.source == parameters.ROWS_IN_MEMORY


def windows_of(context: LoweringContext, where: Operands, x: Sequence[Any], weights: Sequence[int]) -> Windows:
    """weights: shape (out, taps..., in)."""
    out, *taps, per_group = weights
    slots = dict.fromkeys(parameters.WINDOW_SLOTS, 1) | {f"pad_{axis}": 0 for axis in "dhw"}
    if not where.axes:
        slots |= {"in_c": per_group, "group_channels": per_group}
        return Windows(parameters.ROWS_IN_MEMORY, out, 1, per_group, slots)
    attributes, (size, output) = context.attributes, (x[1:-1], (context.outputs[0].shape or ())[1:-1])
    strides, dilations = along(attributes, "stride", where.axes), along(attributes, "dilation", where.axes)
    pads = pad_amounts(attributes, where.axes, output if where.transposed else size, taps)
    for i, axis in enumerate(where.axes):
        slots |= {
            f"in_{axis}": size[i],
            f"out_{axis}": output[i],
            f"kernel_{axis}": taps[i],
            f"stride_{axis}": strides[i],
            f"dilation_{axis}": dilations[i],
            f"pad_{axis}": pads[i][0],
        }
    slots |= {"in_c": x[-1], "group_channels": per_group}
    plain = set(taps) == {1} and set(strides) == {1} and size == output and not any(sum(pad) for pad in pads)
    source = parameters.ROWS_OF_TRANSPOSED_WINDOWS if where.transposed else parameters.ROWS_OF_WINDOWS
    depth = math.prod(taps) * per_group
    return Windows(parameters.ROWS_IN_MEMORY if plain else source, out, x[-1] // per_group, depth, slots)


class ConstantMatrix:
    """The weights as (out, depth), of which rows are made when they are asked for."""

    def __init__(self, context: LoweringContext, where: Operands):
        kind = context.inputs[where.weights]
        assert kind is not None
        shape = [(kind.shape or ())[axis] or 0 for axis in where.order]
        self.shape, self.dtype = (shape[0], math.prod(shape[1:])), kind.dtype
        self._context, self._where = context, where

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        order = self._where.order
        part = self._context.part(self._where.weights, order[0], start, stop)
        return part.transpose(order).reshape(stop - start, self.shape[1])


def bias_of(context: LoweringContext, where: Operands, dtype: type, out: int) -> np.ndarray:
    bias = context.constant(where.bias)
    return np.zeros(out, dtype) if bias is None else bias.astype(dtype)


def sums_of(context: LoweringContext, where: Operands) -> tuple[np.ndarray, np.ndarray]:
    """Of each channel's int8 weights: their sum, and that of their magnitudes, int64 (out,)."""

    def sums() -> np.ndarray:
        weights = ConstantMatrix(context, where)
        both = np.empty((2, weights.shape[0]), np.int64)
        for start in range(0, weights.shape[0], ROWS_AT_ONCE):
            rows = weights[start : start + ROWS_AT_ONCE]
            both[0, start : start + ROWS_AT_ONCE] = rows.sum(axis=1, dtype=np.int64)
            both[1, start : start + ROWS_AT_ONCE] = np.abs(rows.astype(np.int16)).sum(axis=1, dtype=np.int64)
        return both

    both = context.packed("sums", sums, where.weights)
    return both[0], both[1]


def sums_of_products(
    context: LoweringContext, where: Operands, input_zero: int, out: int
) -> tuple[np.ndarray, np.ndarray]:
    """(bias, products), int64 (out,): what is added to the sum of x * w, and the largest magnitude of that sum."""
    sums, magnitudes = sums_of(context, where)
    return bias_of(context, where, np.int64, out) - input_zero * sums, 128 * magnitudes


def room(weights: int) -> int:
    """How many bytes of gathered rows a block may have, for so many bytes of weights."""
    return min(max(weights // WEIGHTS_PER_BLOCK, BLOCK_BYTES[0]), BLOCK_BYTES[1])


def tiling(rows: int, most: int, groups: int, panels: int, products: int, step: int) -> tuple[int, int]:
    """(rows, panels) of a tile, at most `most` rows.

    products: of one row with one panel; step: rows that a kernel computes at once.
    """
    blocks = -(-rows // most)
    # Blocks of equal size; then, while there are too few tiles, smaller ones and fewer panels in each.
    wanted = -(-WANTED_TILES // groups)
    worth = max(1, rows * panels * products // TILE_PRODUCTS)
    shares = min(panels, max(1, min(wanted, worth) // blocks))
    if blocks * shares < min(wanted, worth):
        blocks = max(blocks, min(wanted, worth, rows // step))
    block = min(rows, round_up(-(-rows // blocks), step))
    return block, -(-panels // shares)
