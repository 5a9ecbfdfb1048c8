"""int8 products on machines with tile registers (AMX)."""

from __future__ import annotations

import math

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import find_kernel
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.lane_factors import in_lane_order, lane_factors, lane_order
from runtime.lowering.panels import pack_channels, pack_panels, panel_count
from runtime.lowering.products import Operands, Windows, bias_of, matrix_of, tiling
from runtime.lowering.requantization import requantization

ROWS = WIDTH = 32
VECTORS = 2
TILE_BYTES = 64
BLOCK_ROWS = 128
BLOCK_BYTES = 512 * 1024  # of gathered rows, which stay in a second-level cache
SUMS = 4 * ROWS * WIDTH


def lower(context: LoweringContext, where: Operands, windows: Windows) -> Call | None:
    """None where the machine has no tiles, or this product does not suit them."""
    kernel = find_kernel("matmul_tiles", "int8")
    rows = math.prod(context.outputs[0].shape or ()) // windows.out
    scaling = requantization(context, where.x, where.weights, windows.out)
    if kernel is None or rows < ROWS or scaling is None:
        return None
    weights, zero_point = matrix_of(context, where), scaling.input_zero
    bias = bias_of(context, where, np.int64, windows.out) - zero_point * weights.sum(axis=1, dtype=np.int64)
    largest = np.abs(bias) + 128 * np.abs(weights.astype(np.int32)).sum(axis=1, dtype=np.int64)
    groups, channels = windows.groups, windows.out // windows.groups
    factors = lane_factors(scaling, largest, VECTORS, groups)
    if factors is None:
        return None
    steps = -(-windows.depth // TILE_BYTES)
    step_bytes = -(-windows.depth // (4 * steps)) * 4
    depth = steps * step_bytes
    source = windows.source
    if windows.in_memory and depth != windows.depth:
        source = parameters.ROWS_TO_COPY
    panels = panel_count(channels, WIDTH)
    most = BLOCK_ROWS if source == parameters.ROWS_IN_MEMORY else max(ROWS, BLOCK_BYTES // depth)
    block, tile_panels = tiling(rows, min(most, BLOCK_ROWS), groups, panels, depth * WIDTH, ROWS)
    params = {
        "input": context.input(where.x),
        "weights": context.packed("tiles", lambda: pack_tiles(weights, groups, steps, step_bytes), where.weights),
        "bias": context.derived(
            "tiles bias", lambda: in_lane_order(pack_channels(bias.astype(np.int32), groups, WIDTH), VECTORS)
        ),
        "output": context.output(),
        "output_stride": context.row_stride or windows.out,
        "rows": rows,
        "block": block,
        "groups": groups,
        "channels": channels,
        "depth": depth,
        "panels": panels,
        "tile_panels": tile_panels,
        "panel_tiles": -(-panels // tile_panels),
        "source": source,
        "row_stride": windows.slots["in_c"],
        **windows.slots,
        "padding": zero_point,
        "factors": context.derived("tiles factors", lambda: factors),
        **scaling.parameters(),
        "steps": steps,
        "step_bytes": step_bytes,
        "pairs_per_step": -(-ROWS // (2 * steps)),
        "tile_configuration": context.derived("tile configuration", lambda: tile_configuration(step_bytes)),
    }
    tiles = -(-rows // block) * groups * params["panel_tiles"]
    scratch = 2 * SUMS + (0 if source == parameters.ROWS_IN_MEMORY else block * depth)
    return Call(kernel.family, kernel.symbol, parameters.MATMUL_TILES_I8, params, tiles, scratch=scratch)


def pack_tiles(weights: np.ndarray, groups: int, steps: int, step_bytes: int) -> np.ndarray:
    """(out, depth) int8 -> (groups, panels, steps, 2, step_bytes / 4, 16, 4), zeros beyond depth and channels."""
    padded = np.zeros((weights.shape[0], steps * step_bytes), np.int8)
    padded[:, : weights.shape[1]] = weights
    panels = pack_panels(padded, groups, WIDTH)  # (groups, panels, depth, 32)
    panels = panels[..., lane_order(VECTORS)]
    shape = (*panels.shape[:2], steps, step_bytes // 4, 4, VECTORS, WIDTH // VECTORS)
    return np.ascontiguousarray(panels.reshape(shape).transpose(0, 1, 2, 5, 3, 6, 4))


def tile_configuration(step_bytes: int) -> np.ndarray:
    """Tiles 0 to 3: sums of 16 x 16; 4 and 5: 16 rows of `step_bytes`; 6 and 7: the weights that they meet."""
    configuration = np.zeros(64, np.uint8)
    configuration[0] = 1  # palette
    configuration[16:32].view(np.uint16)[:] = [TILE_BYTES] * 4 + [step_bytes] * 2 + [TILE_BYTES] * 2
    configuration[48:56] = [16] * 6 + [step_bytes // 4] * 2
    return configuration
