"""Convolutions, transposed ones and dense layers as products of matrices with constant weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import Kernel, kernel_for
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.panels import pack_channels, pack_panels, pack_panels_of_quads, panel_count, round_up
from runtime.lowering.requantization import requantization
from schema.ops.attributes import activation_range
from schema.ops.windows import along, pad_amounts

BLOCK_BYTES = (96 * 1024, 768 * 1024)  # least and most of gathered rows, which stay in a second-level cache
WEIGHTS_PER_BLOCK = 8  # weights that many times as large as the rows are worth more rows, for which they are read once
BLOCK_ROWS = 96
WANTED_TILES = 8  # enough for a few workers to share evenly; tiles that share rows gather them again
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


def lower(context: LoweringContext) -> list[Call] | None:
    where = OPERANDS[context.node.op]
    x, weights, output = context.inputs[where.x], context.constant(where.weights), context.outputs[0]
    bias = context.constant(where.bias)
    has_bias = len(context.inputs) > where.bias and context.inputs[where.bias] is not None
    dtype = output.dtype.name
    if x is None or weights is None or (has_bias and bias is None) or x.dtype != output.dtype:
        return None
    if dtype not in ("float32", "int8") or 0 in (output.shape or ()):
        return None
    windows = _windows(context, where, x.shape or (), weights.transpose(where.order).shape)
    kernel = kernel_for("matmul", dtype)
    values = _float_values(context, where, kernel, windows) if dtype == "float32" else None
    if dtype == "int8":
        values = _int8_values(context, where, kernel, windows)
    if values is None:
        return None
    item = output.dtype.itemsize
    rows = math.prod(output.shape or ()) // windows.out
    channels, groups = windows.out // windows.groups, windows.groups
    panels = panel_count(channels, kernel.width)
    row_bytes = 0 if windows.in_memory and dtype == "float32" else round_up(windows.depth * item, 4)
    room = min(max(channels * windows.depth * item // WEIGHTS_PER_BLOCK, BLOCK_BYTES[0]), BLOCK_BYTES[1])
    most = BLOCK_ROWS if row_bytes == 0 else min(BLOCK_ROWS, max(kernel.rows, room // row_bytes))
    block, tile_panels = _tiling(rows, most, groups, panels, windows.depth * channels // panels, kernel.rows)
    params = {
        "input": context.input(where.x),
        "output": context.output(),
        "output_stride": windows.out * item,
        "rows": rows,
        "block": block,
        "groups": groups,
        "channels": channels,
        "panels": panels,
        "tile_panels": tile_panels,
        "panel_tiles": -(-panels // tile_panels),
        "source": windows.source,
        "row_stride": windows.slots["in_c"] * item,
        **windows.slots,
        **values,
    }
    declaration = parameters.MATMUL_F32 if dtype == "float32" else parameters.MATMUL_I8
    tiles = -(-rows // block) * groups * params["panel_tiles"]
    scratch = kernel.rows * kernel.width * 4 + block * row_bytes + 64
    return [Call(kernel.family, kernel.symbol, declaration, params, tiles, scratch=scratch)]


@dataclass(frozen=True)
class _Windows:
    """depth: products per output and group. slots: the kernel's parameters by name."""

    source: int
    out: int
    groups: int
    depth: int
    slots: dict[str, int]

    @property
    def in_memory(self) -> bool:
        return self.source == parameters.ROWS_IN_MEMORY


def _windows(context: LoweringContext, where: Operands, x: Sequence[Any], weights: Sequence[int]) -> _Windows:
    """weights: shape (out, taps..., in)."""
    out, *taps, per_group = weights
    slots = dict.fromkeys(parameters.WINDOW_SLOTS, 1) | {f"pad_{axis}": 0 for axis in "dhw"}
    if not where.axes:
        slots |= {"in_c": per_group, "group_channels": per_group}
        return _Windows(parameters.ROWS_IN_MEMORY, out, 1, per_group, slots)
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
    return _Windows(parameters.ROWS_IN_MEMORY if plain else source, out, x[-1] // per_group, depth, slots)


def _matrix(context: LoweringContext, where: Operands) -> np.ndarray:
    """The weights as (out, depth)."""
    weights = context.constant(where.weights)
    assert weights is not None
    weights = weights.transpose(where.order)
    return weights.reshape(weights.shape[0], -1)


def _bias(context: LoweringContext, where: Operands, dtype: type, out: int) -> np.ndarray:
    bias = context.constant(where.bias)
    return np.zeros(out, dtype) if bias is None else bias.astype(dtype)


def _float_values(context: LoweringContext, where: Operands, kernel: Kernel, windows: _Windows) -> dict[str, Any]:
    low, high = activation_range(context.attributes)
    groups, width = windows.groups, kernel.width

    def bias() -> np.ndarray:
        return pack_channels(_bias(context, where, np.float32, windows.out), groups, width)

    return {
        "depth": windows.depth,
        "weights": context.packed(
            ("panels", width), lambda: pack_panels(_matrix(context, where), groups, width), where.weights
        ),
        "bias": context.derived(("bias", width), bias),
        "low": low,
        "high": high,
    }


def _int8_values(context: LoweringContext, where: Operands, kernel: Kernel, windows: _Windows) -> dict[str, Any] | None:
    scaling = requantization(context, where.x, where.weights, windows.out)
    if scaling is None:
        return None
    groups, width = windows.groups, kernel.width

    def bias() -> np.ndarray:
        # Rows are x + 128, so that sum w * (x - zero) = sum w * (x + 128) - (128 + zero) * sum w, modulo 2**32.
        sums = _matrix(context, where).sum(axis=1, dtype=np.int64)
        corrected = _bias(context, where, np.int64, windows.out) - (128 + scaling.input_zero) * sums
        return pack_channels(corrected.astype(np.int32), groups, width)

    return {
        "depth": round_up(windows.depth, 4),
        "weights": context.packed(
            ("quads", width), lambda: pack_panels_of_quads(_matrix(context, where), groups, width), where.weights
        ),
        "bias": context.derived(("bias", width), bias),
        "multipliers": context.derived(
            ("multipliers", width), lambda: pack_channels(scaling.factors()[0], groups, width)
        ),
        "shifts": context.derived(("shifts", width), lambda: pack_channels(scaling.factors()[1], groups, width)),
        "padding": scaling.input_zero + 128,
        **scaling.parameters(),
    }


def _tiling(rows: int, most: int, groups: int, panels: int, products: int, step: int) -> tuple[int, int]:
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
