"""float32 products with constant weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import fusion
from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import kernel_for
from runtime.lowering import depthwise
from runtime.lowering.base import Call, LoweringContext, Parameters
from runtime.lowering.panels import pack_channels, pack_panels, panel_count
from runtime.lowering.products import BLOCK_ROWS, ConstantMatrix, Operands, Windows, bias_of, room, tiling
from schema.ops.attributes import activation_range

LINE = 64  # bytes
PASS_DEPTH = 256  # so much of a panel stays in a first-level cache
SAME_SETS = 1024  # rows that many bytes apart share a quarter of a first-level cache's sets, or less
COPY_PANELS = 4
LEAST_LINE = 2  # times the rows that a kernel computes at once: shorter lines waste too many of them
DEPTHWISE_ROWS = 128
LINES_BYTES = 256 * 1024
NO_LINES = {"lines": 0, "lines_in": 0, "line_blocks": 0, "line_bytes": 0}


def lower(context: LoweringContext, where: Operands, windows: Windows) -> Call:
    kernel = kernel_for("matmul", "float32")
    rows = math.prod(context.outputs[0].shape or ()) // windows.out
    panels = panel_count(windows.out // windows.groups, kernel.width)
    if context.before is not None:
        source = _depthwise(context.before, rows, panels)
    else:
        source = lines(windows, rows, panels, kernel.rows) or _rows(windows, rows, panels, kernel.rows)
    tiles, gathered = source.pop("tiles"), source.pop("gathered")
    params = product(context, where, windows) | {
        "input": context.input(where.x),
        "output": context.output(),
        "rows": rows,
        "residual": context.input(fusion.RESIDUAL) if fusion.has_residual(context.node) else 0,
        **source,
    }
    scratch = 2 * source["block"] * kernel.width * 4 + gathered + LINE
    return Call(kernel.family, kernel.symbol, parameters.MATMUL_F32, params, tiles, scratch=scratch)


def product(context: LoweringContext, where: Operands, windows: Windows) -> dict[str, Any]:
    """The slots that do not depend on where rows come from."""
    groups, width = windows.groups, kernel_for("matmul", "float32").width
    channels = windows.out // groups
    low, high = activation_range(context.attributes)

    def bias() -> np.ndarray:
        return pack_channels(bias_of(context, where, np.float32, windows.out), groups, width)

    return {
        "output_stride": context.row_stride or windows.out * 4,
        "groups": groups,
        "channels": channels,
        "panels": panel_count(channels, width),
        **windows.slots,
        "depth": windows.depth,
        "weights": context.packed(
            ("panels", width, groups), lambda: pack_panels(ConstantMatrix(context, where), groups, width), where.weights
        ),
        "bias": context.derived(("bias", width), bias),
        "padding": 0,
        "depthwise": 0,
        "room": 0,
        "residual_stride": windows.out * 4,
        "low": low,
        "high": high,
    }


def pieces(runs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Slots for a depth that is `runs` of (bytes from a row's address, numbers)."""
    offsets: list[int] = []
    sizes: list[int] = []
    ends: list[int] = []
    depth = 0
    for offset, length in runs:
        for start in range(0, max(length, 1), PASS_DEPTH):
            size = min(PASS_DEPTH, length - start)
            if depth + size > PASS_DEPTH:
                ends.append(len(sizes))
                depth = 0
            offsets.append(offset + 4 * start)
            sizes.append(size)
            depth += size
    ends.append(len(sizes))
    arrays = {"pass_ends": ends, "piece_offsets": offsets, "piece_sizes": sizes}
    return {"passes": len(ends)} | {name: np.array(values, np.int64) for name, values in arrays.items()}


def gathered_stride(depth: int) -> int:
    """Bytes from one gathered row to the next: an odd number of cache lines, so that they meet in different sets."""
    return (-(-4 * depth // LINE) | 1) * LINE


def _rows(windows: Windows, rows: int, panels: int, step: int) -> dict[str, Any]:
    """Rows in memory, or gathered. Rows in memory that meet in the same cache sets are copied, if enough products are
    made of each.
    """
    source, row_bytes = windows.source, gathered_stride(windows.depth)
    if windows.in_memory:
        if 4 * windows.depth % SAME_SETS or panels < COPY_PANELS or rows == 1:
            row_bytes = 0
        else:
            source = parameters.ROWS_TO_COPY
    channels = windows.out // windows.groups
    most = BLOCK_ROWS
    if row_bytes:
        most = min(most, max(step, room(4 * channels * windows.depth) // row_bytes))
    block, tile_panels = tiling(rows, most, windows.groups, panels, windows.depth * channels // panels, step)
    panel_tiles = -(-panels // tile_panels)
    return {
        "source": source,
        "row_stride": windows.slots["in_c"] * 4,
        "block": block,
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "gathered_stride": row_bytes,
        "gathered": block * row_bytes,
        "tiles": -(-rows // block) * windows.groups * panel_tiles,
        **NO_LINES,
        **pieces([(0, windows.depth)]),
    }


def _depthwise(before: LoweringContext, rows: int, panels: int) -> dict[str, Any]:
    """Rows that a depthwise convolution makes, some lines of them at a time."""
    calls = depthwise.lower(before)
    assert calls is not None  # runtime.fusion has looked
    _, out_h, out_w, depth = before.outputs[0].shape or ()
    row_bytes = gathered_stride(depth)
    most = max(1, min(DEPTHWISE_ROWS // out_w, LINES_BYTES // (row_bytes * out_w)))
    count = min(most, -(-out_h // 2))  # two workers have something to do, and weights are read no more often than that
    line_blocks = -(-out_h // count)
    return {
        "source": parameters.ROWS_OF_DEPTHWISE,
        "depthwise": Parameters(calls[0].block, {**calls[0].params, "output": 0}),
        "room": depthwise.room(depth),
        "row_stride": 0,
        "block": count * out_w,
        "tile_panels": panels,  # what the depthwise convolution gives is used for all
        "panel_tiles": 1,
        "gathered_stride": row_bytes,
        "gathered": depthwise.room(depth) + count * out_w * row_bytes,
        "tiles": rows // (out_h * out_w) * line_blocks,
        "lines": count,
        "lines_in": 0,
        "line_blocks": line_blocks,
        "line_bytes": 0,
        "out_h": out_h,
        "out_w": out_w,
        **pieces([(0, depth)]),
    }


def windows_in_lines(windows: Windows) -> tuple[int, int, list[tuple[int, int]]]:
    """(bytes of a line with its padding, lines that a window reaches over, the runs of its depth, see `pieces`)."""
    s = windows.slots
    line_bytes = 4 * s["in_c"] * ((s["out_w"] - 1) * s["stride_w"] + (s["kernel_w"] - 1) * s["dilation_w"] + 1)
    together = s["kernel_w"] if s["dilation_w"] == 1 else 1
    runs = [
        (ky * s["dilation_h"] * line_bytes + 4 * kx * s["dilation_w"] * s["in_c"], together * s["in_c"])
        for ky in range(s["kernel_h"])
        for kx in range(0, s["kernel_w"], together)
    ]
    return line_bytes, (s["kernel_h"] - 1) * s["dilation_h"] + 1, runs


def lines(windows: Windows, rows: int, panels: int, step: int) -> dict[str, Any] | None:
    """Rows of whole lines of an image, copied with their padding; None where lines are short."""
    s = windows.slots
    if windows.source != parameters.ROWS_OF_WINDOWS or windows.groups != 1 or s["kernel_d"] * s["in_d"] != 1:
        return None
    if s["out_w"] < LEAST_LINE * step:
        return None
    line_bytes, reach, runs = windows_in_lines(windows)
    most = max(1, (LINES_BYTES // line_bytes - reach) // s["stride_h"] + 1)
    products = s["out_w"] * windows.depth * windows.out // panels
    lines, tile_panels = tiling(s["out_h"], most, 1, panels, products, 1)
    line_blocks, panel_tiles = -(-s["out_h"] // lines), -(-panels // tile_panels)
    lines_in = (lines - 1) * s["stride_h"] + reach
    return {
        "source": parameters.ROWS_OF_LINES,
        "row_stride": s["stride_w"] * s["in_c"] * 4,
        "block": s["out_w"],
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "gathered_stride": 0,
        "gathered": lines_in * line_bytes,
        "tiles": rows // (s["out_h"] * s["out_w"]) * line_blocks * panel_tiles,
        "lines": lines,
        "lines_in": lines_in,
        "line_blocks": line_blocks,
        "line_bytes": line_bytes,
        **pieces(runs),
    }
