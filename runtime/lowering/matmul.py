"""Convolutions, transposed ones and dense layers as products of matrices with constant weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import Kernel, kernel_for
from runtime.lowering import line_chain, matmul_float, matmul_tiles, wide
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.lane_factors import LANES, Panels, lane_order, sums_factors
from runtime.lowering.panels import pack_channels, pack_panels_of_quads, panel_count, round_up
from runtime.lowering.products import (
    BLOCK_ROWS,
    OPERANDS,
    ConstantMatrix,
    Operands,
    Windows,
    bias_of,
    room,
    sums_of,
    sums_of_products,
    tiling,
    windows_of,
)
from runtime.lowering.requantization import Requantization, requantization

WIDTH_OF_LANES = 32  # of a kernel's panels where two rows make a vector of bytes


def lower(context: LoweringContext) -> list[Call] | None:
    where = OPERANDS[context.node.op]
    x, weights, output = context.inputs[where.x], context.inputs[where.weights], context.outputs[0]
    has_bias = len(context.inputs) > where.bias and context.inputs[where.bias] is not None
    if x is None or weights is None or x.dtype != output.dtype:
        return None
    if not context.is_constant(where.weights) or (has_bias and not context.is_constant(where.bias)):
        return None
    if output.dtype not in (np.float32, np.int8, np.int16) or 0 in (output.shape or ()):
        return None
    x_shape = x.shape or ()
    if context.before is not None:
        x_shape = context.before.outputs[0].shape or ()
    shape = weights.shape or ()
    windows = windows_of(context, where, x_shape, [shape[axis] for axis in where.order])
    if context.before is not None and context.before.before is not None:
        return [line_chain.lower(context)]
    if output.dtype == np.float32:
        return [matmul_float.lower(context, where, windows)]
    if output.dtype == np.int16:
        return wide.lower_product(context, where, windows)
    call = matmul_tiles.lower(context, where, windows) or _int8(context, where, windows)
    return None if call is None else [call]


def _int8(context: LoweringContext, where: Operands, windows: Windows) -> Call | None:
    kernel = kernel_for("matmul", "int8")
    values = _int8_values(context, where, kernel, windows)
    if values is None:
        return None
    rows = math.prod(context.outputs[0].shape or ()) // windows.out
    channels, groups = windows.out // windows.groups, windows.groups
    panels = panel_count(channels, kernel.width)
    row_bytes = round_up(windows.depth, 4)
    most = min(BLOCK_ROWS, max(kernel.rows, room(channels * windows.depth) // row_bytes))
    block, tile_panels = tiling(rows, most, groups, panels, windows.depth * channels // panels, kernel.rows)
    panel_tiles = -(-panels // tile_panels)
    params = {
        "input": context.input(where.x),
        "output": context.output(),
        "output_stride": context.row_stride or windows.out,
        "rows": rows,
        "block": block,
        "groups": groups,
        "channels": channels,
        "panels": panels,
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "source": windows.source,
        "row_stride": windows.slots["in_c"],
        **windows.slots,
        **values,
    }
    tiles = -(-rows // block) * groups * panel_tiles
    scratch = kernel.rows * kernel.width * 4 + block * row_bytes + 64
    return Call(kernel.family, kernel.symbol, parameters.MATMUL_I8, params, tiles, scratch=scratch)


def _int8_values(context: LoweringContext, where: Operands, kernel: Kernel, windows: Windows) -> dict[str, Any] | None:
    scaling = requantization(context, where.x, where.weights, windows.out)
    if scaling is None:
        return None
    groups, width = windows.groups, kernel.width
    common = {"depth": round_up(windows.depth, 4), "padding": scaling.input_zero + 128, **scaling.parameters()}
    if width == WIDTH_OF_LANES:
        values = _in_lanes(context, where, windows, scaling)
        if values is not None:
            return common | values

    def bias() -> np.ndarray:
        # Rows are x + 128, so that sum w * (x - zero) = sum w * (x + 128) - (128 + zero) * sum w, modulo 2**32.
        sums, _ = sums_of(context, where)
        corrected = bias_of(context, where, np.int64, windows.out) - (128 + scaling.input_zero) * sums
        return pack_channels(corrected.astype(np.int32), groups, width)

    return common | {
        "weights": context.packed(
            ("quads", width, groups),
            lambda: pack_panels_of_quads(ConstantMatrix(context, where), groups, width),
            where.weights,
        ),
        "bias": context.derived(("bias", width), bias),
        "factors": 0,
        "multipliers": context.derived(
            ("multipliers", width), lambda: pack_channels(scaling.factors()[0], groups, width)
        ),
        "shifts": context.derived(("shifts", width), lambda: pack_channels(scaling.factors()[1], groups, width)),
    }


def _in_lanes(
    context: LoweringContext, where: Operands, windows: Windows, scaling: Requantization
) -> dict[str, Any] | None:
    """What the kernel needs to requantize two rows at a time, None where no rule for that can be used."""
    groups, vectors = windows.groups, WIDTH_OF_LANES // LANES
    sums, products = sums_of_products(context, where, scaling.input_zero, windows.out)
    epilogue = sums_factors(scaling, sums, products, vectors, groups)
    if epilogue is None:
        return None

    def bias() -> np.ndarray:
        more = 128 * sums_of(context, where)[0]  # as above
        return (epilogue.start - Panels(windows.out, vectors, groups).of(more)).astype(np.int32)

    def weights() -> np.ndarray:
        matrix = ConstantMatrix(context, where)
        return pack_panels_of_quads(matrix, groups, WIDTH_OF_LANES, lane_order(vectors))

    return {
        "rule": epilogue.rule,
        "weights": context.packed(("quads in lane order", groups), weights, where.weights),
        "bias": context.derived("bias in lane order", bias),
        "factors": context.derived("factors", lambda: epilogue.factors),
        "multipliers": 0,
        "shifts": 0,
    }
