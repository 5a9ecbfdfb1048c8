"""Convolutions, transposed ones and dense layers as products of matrices with constant weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import Kernel, kernel_for
from runtime.lowering import matmul_tiles
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.panels import pack_channels, pack_panels, pack_panels_of_quads, panel_count, round_up
from runtime.lowering.products import OPERANDS, Operands, Windows, bias_of, matrix_of, tiling, windows_of
from runtime.lowering.requantization import requantization
from schema.ops.attributes import activation_range

BLOCK_BYTES = (96 * 1024, 1024 * 1024)  # least and most of gathered rows, which stay in a second-level cache
WEIGHTS_PER_BLOCK = 8  # weights that many times as large as the rows are worth more rows, for which they are read once
BLOCK_ROWS = 96
LINE = 64  # bytes
SAME_SETS = 1024  # rows that many bytes apart share a quarter of a first-level cache's sets, or less
COPY_PANELS = 4


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
    windows = windows_of(context, where, x.shape or (), weights.transpose(where.order).shape)
    if dtype == "int8":
        call = matmul_tiles.lower(context, where, windows)
        if call is not None:
            return [call]
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
    source, row_bytes = windows.source, round_up(windows.depth, 4)
    if dtype == "float32":
        source, row_bytes = _float_rows(windows, rows, panels)
    room = min(max(channels * windows.depth * item // WEIGHTS_PER_BLOCK, BLOCK_BYTES[0]), BLOCK_BYTES[1])
    most = BLOCK_ROWS if row_bytes == 0 else min(BLOCK_ROWS, max(kernel.rows, room // row_bytes))
    block, tile_panels = tiling(rows, most, groups, panels, windows.depth * channels // panels, kernel.rows)
    params = {
        "input": context.input(where.x),
        "output": context.output(),
        "output_stride": context.row_stride or windows.out * item,
        "rows": rows,
        "block": block,
        "groups": groups,
        "channels": channels,
        "panels": panels,
        "tile_panels": tile_panels,
        "panel_tiles": -(-panels // tile_panels),
        "source": source,
        "row_stride": windows.slots["in_c"] * item,
        **windows.slots,
        **values,
    }
    declaration = parameters.MATMUL_I8
    if dtype == "float32":
        declaration = parameters.MATMUL_F32
        params["gathered_stride"] = row_bytes
    tiles = -(-rows // block) * groups * params["panel_tiles"]
    sums = 2 * block if dtype == "float32" else kernel.rows
    scratch = sums * kernel.width * 4 + block * row_bytes + 64
    return [Call(kernel.family, kernel.symbol, declaration, params, tiles, scratch=scratch)]


def _float_rows(windows: Windows, rows: int, panels: int) -> tuple[int, int]:
    """(source, bytes of a gathered row): an odd number of cache lines, so that rows do not meet in the same sets.

    Where rows in memory would, they are copied, if enough products are made of each.
    """
    size = 4 * windows.depth
    if windows.in_memory:
        if size % SAME_SETS or panels < COPY_PANELS or rows == 1:
            return windows.source, 0
        return parameters.ROWS_TO_COPY, size + LINE
    lines = -(-size // LINE)
    return windows.source, (lines | 1) * LINE


def _float_values(context: LoweringContext, where: Operands, kernel: Kernel, windows: Windows) -> dict[str, Any]:
    low, high = activation_range(context.attributes)
    groups, width = windows.groups, kernel.width

    def bias() -> np.ndarray:
        return pack_channels(bias_of(context, where, np.float32, windows.out), groups, width)

    return {
        "depth": windows.depth,
        "weights": context.packed(
            ("panels", width), lambda: pack_panels(matrix_of(context, where), groups, width), where.weights
        ),
        "bias": context.derived(("bias", width), bias),
        "low": low,
        "high": high,
    }


def _int8_values(context: LoweringContext, where: Operands, kernel: Kernel, windows: Windows) -> dict[str, Any] | None:
    scaling = requantization(context, where.x, where.weights, windows.out)
    if scaling is None:
        return None
    groups, width = windows.groups, kernel.width

    def bias() -> np.ndarray:
        # Rows are x + 128, so that sum w * (x - zero) = sum w * (x + 128) - (128 + zero) * sum w, modulo 2**32.
        sums = matrix_of(context, where).sum(axis=1, dtype=np.int64)
        corrected = bias_of(context, where, np.int64, windows.out) - (128 + scaling.input_zero) * sums
        return pack_channels(corrected.astype(np.int32), groups, width)

    return {
        "depth": round_up(windows.depth, 4),
        "weights": context.packed(
            ("quads", width), lambda: pack_panels_of_quads(matrix_of(context, where), groups, width), where.weights
        ),
        "bias": context.derived(("bias", width), bias),
        "multipliers": context.derived(
            ("multipliers", width), lambda: pack_channels(scaling.factors()[0], groups, width)
        ),
        "shifts": context.derived(("shifts", width), lambda: pack_channels(scaling.factors()[1], groups, width)),
        "padding": scaling.input_zero + 128,
        **scaling.parameters(),
    }
