"""int8 products on machines with tile registers (AMX)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import find_kernel
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.lane_factors import lane_order, sums_factors
from runtime.lowering.panels import Matrix, pack, panel_count
from runtime.lowering.products import ConstantMatrix, Operands, Windows, sums_of_products, tiling
from runtime.lowering.requantization import requantization

ROWS = WIDTH = 32
VECTORS = 2
TILE_BYTES = 64
BLOCK_ROWS = 128
BLOCK_BYTES = 512 * 1024  # of gathered rows or lines, which stay in a second-level cache
SUMS = 4 * ROWS * WIDTH
LINE_SLOTS = ("lines", "lines_in", "line_blocks", "line_bytes", "line_rows", "segments", "segment_rows", "copied")


def lower(context: LoweringContext, where: Operands, windows: Windows) -> Call | None:
    """None where the machine has no tiles, or this product does not suit them."""
    kernel = find_kernel("matmul_tiles", "int8")
    rows = math.prod(context.outputs[0].shape or ()) // windows.out
    scaling = requantization(context, where.x, where.weights, windows.out)
    if kernel is None or rows < ROWS or scaling is None:
        return None
    bias, products = sums_of_products(context, where, scaling.input_zero, windows.out)
    groups, channels = windows.groups, windows.out // windows.groups
    epilogue = sums_factors(scaling, bias, products, VECTORS, groups)
    if epilogue is None:
        return None
    panels = panel_count(channels, WIDTH)
    source = lines(windows, rows, panels) or _rows(windows, rows, panels)
    steps, step_bytes = source["steps"], source["step_bytes"]
    runs = source.pop("runs")
    weights = ConstantMatrix(context, where)
    tiles, scratch = source.pop("tiles"), source.pop("scratch")
    params = {
        "input": context.input(where.x),
        "weights": context.packed(
            ("tiles", groups, runs), lambda: pack_tiles(weights, groups, runs, steps, step_bytes), where.weights
        ),
        "output": context.output(),
        "output_stride": context.row_stride or windows.out,
        "rows": rows,
        "groups": groups,
        "channels": channels,
        "panels": panels,
        **windows.slots,
        "padding": scaling.input_zero,
        **scaling.parameters(),
        "rule": epilogue.rule,
        "factors": context.derived("tiles factors", lambda: epilogue.factors),
        "start": context.derived("tiles start", lambda: epilogue.start),
        "pairs_per_step": -(-ROWS // (2 * steps)),
        "tile_configuration": context.derived("tile configuration", lambda: tile_configuration(step_bytes)),
        **source,
    }
    return Call(kernel.family, kernel.symbol, parameters.MATMUL_TILES_I8, params, tiles, scratch=2 * SUMS + scratch)


def _steps(length: int) -> tuple[int, int]:
    """(steps, bytes of each) for `length` bytes in one piece: as even as multiples of 4 allow."""
    steps = -(-length // TILE_BYTES)
    return steps, -(-length // (4 * steps)) * 4


def _rows(windows: Windows, rows: int, panels: int) -> dict[str, Any]:
    """Rows in memory, or gathered one by one."""
    steps, step_bytes = _steps(windows.depth)
    depth = steps * step_bytes
    source = windows.source
    if windows.in_memory and depth != windows.depth:
        source = parameters.ROWS_TO_COPY
    in_memory = source == parameters.ROWS_IN_MEMORY
    most = BLOCK_ROWS if in_memory else min(BLOCK_ROWS, max(ROWS, BLOCK_BYTES // depth))
    block, tile_panels = tiling(rows, most, windows.groups, panels, depth * WIDTH, ROWS)
    panel_tiles = -(-panels // tile_panels)
    return {
        "source": source,
        "row_stride": windows.slots["in_c"],
        "block": block,
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "runs": 1,
        "steps": steps,
        "step_bytes": step_bytes,
        "step_offsets": step_bytes * np.arange(steps, dtype=np.int64),
        "tiles": -(-rows // block) * windows.groups * panel_tiles,
        "scratch": 0 if in_memory else block * depth,
        **dict.fromkeys(LINE_SLOTS, 0),
    }


def lines(windows: Windows, rows: int, panels: int) -> dict[str, Any] | None:
    """Rows of the lines of an image; None where those would be too short for tiles."""
    s = windows.slots
    if windows.source != parameters.ROWS_OF_WINDOWS or windows.groups != 1 or s["kernel_d"] * s["in_d"] != 1:
        return None
    on_and_on = s["stride_h"] == s["stride_w"] == 1  # rows go on from one line to the next
    line_rows = (s["out_w"] - 1) * s["stride_w"] + (s["kernel_w"] - 1) * s["dilation_w"] + 1
    # What lies side by side in memory: all taps of a line, or each tap where they are dilated.
    together = s["kernel_w"] if s["dilation_w"] == 1 else 1
    length = together * s["in_c"]
    steps, step_bytes = _steps(length)
    used_h = (s["out_h"] - 1) * s["stride_h"] + (s["kernel_h"] - 1) * s["dilation_h"] + 1
    copied = bool(
        s["pad_h"] or s["pad_w"] or used_h > s["in_h"] or line_rows > s["in_w"] or steps * step_bytes != length
    )
    if not copied:
        line_rows = s["in_w"]
    line_bytes = line_rows * s["in_c"]
    least = -(-(ROWS - s["out_w"]) // line_rows) + 1 if on_and_on else 1
    if least > s["out_h"] or (not on_and_on and s["out_w"] < ROWS):
        return None
    most = max(least, min(BLOCK_BYTES // line_bytes - s["kernel_h"] * s["dilation_h"], 512 // line_rows))
    depth = s["kernel_h"] * s["kernel_w"] * s["in_c"]
    lines, tile_panels = tiling(s["out_h"], most, 1, panels, s["out_w"] * depth * WIDTH, max(least, 1))
    lines = max(lines, least)
    batch = rows // (s["out_h"] * s["out_w"])
    line_blocks, panel_tiles = -(-s["out_h"] // lines), -(-panels // tile_panels)
    taps = [
        ky * s["dilation_h"] * line_bytes + kx * s["dilation_w"] * s["in_c"]
        for ky in range(s["kernel_h"])
        for kx in range(0, s["kernel_w"], together)
    ]
    offsets = np.array([tap + step_bytes * k for tap in taps for k in range(steps)], np.int64)
    height = (lines - 1) * s["stride_h"] + (s["kernel_h"] - 1) * s["dilation_h"] + 1
    return {
        "source": parameters.ROWS_OF_LINES,
        "row_stride": s["stride_w"] * s["in_c"],
        "block": lines * s["out_w"],
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "runs": len(taps),
        "steps": offsets.size,
        "step_bytes": step_bytes,
        "step_offsets": offsets,
        "tiles": batch * line_blocks * panel_tiles,
        "scratch": height * line_bytes + steps * step_bytes - length if copied else 0,
        "lines": lines,
        "lines_in": height,
        "line_blocks": line_blocks,
        "line_bytes": line_bytes,
        "line_rows": line_rows,
        "segments": 1 if on_and_on else lines,
        "segment_rows": (lines - 1) * line_rows + s["out_w"] if on_and_on else s["out_w"],
        "copied": int(copied),
    }


def pack_tiles(weights: Matrix, groups: int, runs: int, steps: int, step_bytes: int) -> np.ndarray:
    """(out, runs * length) int8 -> (groups, panels, steps, 2, step_bytes / 4, 16, 4).

    Each run is padded with zeros to its share of the steps.
    """
    order, length = lane_order(VECTORS), weights.shape[1] // runs
    padded = np.zeros((WIDTH, runs, steps // runs * step_bytes), np.int8)

    def arrange(rows: np.ndarray) -> np.ndarray:
        padded[:, :, :length] = rows[order].reshape(WIDTH, runs, length)
        return padded.reshape(VECTORS, -1, steps, step_bytes // 4, 4).transpose(2, 0, 3, 1, 4)

    return pack(weights, groups, WIDTH, (steps, VECTORS, step_bytes // 4, WIDTH // VECTORS, 4), arrange)


def tile_configuration(step_bytes: int) -> np.ndarray:
    """Tiles 0 to 3: sums of 16 x 16; 4 and 5: 16 rows of `step_bytes`; 6 and 7: the weights that they meet."""
    configuration = np.zeros(64, np.uint8)
    configuration[0] = 1  # palette
    configuration[16:32].view(np.uint16)[:] = [TILE_BYTES] * 4 + [step_bytes] * 2 + [TILE_BYTES] * 2
    configuration[48:56] = [16] * 6 + [step_bytes // 4] * 2
    return configuration
