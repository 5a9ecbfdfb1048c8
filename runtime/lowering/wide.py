"""Convolutions and dense layers of int16 activations with int8 weights (TFLite's 16x8), and arithmetic of int16."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from runtime.kernels.elementwise_parameters import BINARY
from runtime.kernels.matmul_parameters import EXACT, FP32_ROUND_EVEN, ROWS_IN_MEMORY, ROWS_TO_COPY, TFLITE_DOUBLE
from runtime.kernels.wide_parameters import (
    EXACT_OF_INT32,
    EXTREMUM_I16,
    MATMUL_I16,
    PRODUCT_I16,
    SHIFTED_SUM_I16,
    SUM_I16,
    WIDE,
)
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.panels import pack_channels, pack_panels_of_pairs, panel_count, round_up
from runtime.lowering.products import BLOCK_ROWS, ConstantMatrix, Operands, Windows, bias_of, room, tiling
from runtime.lowering.requantization import per_tensor, requantization
from schema import fixedpoint
from schema.ops import common_scale
from schema.ops.attributes import activation_range

LANES = 16
ROWS = 6  # that the kernel computes at once
SUMS_BYTES = 3 * 64 * ROWS  # of sums in 32 and in 64 bits
ARITHMETIC = "runtime.kernels.arithmetic_i16"

Pack = Callable[[np.ndarray], np.ndarray]


def lower_product(context: LoweringContext, where: Operands, windows: Windows) -> list[Call] | None:
    """CONV_2D and its relatives, FULLY_CONNECTED; context: of int16 inputs and outputs."""
    groups = windows.groups

    def pack(values: np.ndarray) -> np.ndarray:
        return pack_channels(values, groups, LANES)

    scaling = scaling_of(context, where.x, where.weights, where.bias, windows.out, pack)
    if scaling is None:
        return None
    rows = math.prod(context.outputs[0].shape or ()) // windows.out
    channels = windows.out // groups
    panels = panel_count(channels, LANES)
    row_bytes = 2 * round_up(windows.depth, 2)
    source = windows.source
    if windows.in_memory and row_bytes != 2 * windows.depth:
        source = ROWS_TO_COPY  # rows are read by pairs
    most = min(BLOCK_ROWS, max(ROWS, room(channels * windows.depth) // row_bytes))
    block, tile_panels = tiling(rows, most, groups, panels, windows.depth * channels // panels, ROWS)
    panel_tiles = -(-panels // tile_panels)
    params = {
        "input": context.input(where.x),
        "output": context.output(),
        "output_stride": context.row_stride or windows.out * 2,
        "rows": rows,
        "block": block,
        "groups": groups,
        "channels": channels,
        "panels": panels,
        "tile_panels": tile_panels,
        "panel_tiles": panel_tiles,
        "source": source,
        "row_stride": windows.slots["in_c"] * 2,
        **windows.slots,
        "depth": windows.depth,
        "weights": context.packed(
            ("pairs", groups),
            lambda: pack_panels_of_pairs(ConstantMatrix(context, where), groups, LANES),
            where.weights,
        ),
        "bias": context.derived("bias", lambda: pack(bias_of(context, where, np.int64, windows.out))),
        **scaling,
    }
    scratch = SUMS_BYTES + (0 if source == ROWS_IN_MEMORY else block * row_bytes)
    tiles = -(-rows // block) * groups * panel_tiles
    return [Call("runtime.kernels.matmul_i16", "xnn_matmul_i16", MATMUL_I16, params, tiles, scratch=scratch)]


def scaling_of(
    context: LoweringContext, x: int, weights: int, bias: int, channels: int, pack: Pack
) -> dict[str, Any] | None:
    """The slots that say how int64 sums become int16 (see schema.ops.linear.finish); None for other quantizations."""
    given = requantization(context, x, weights, channels)
    if given is None or given.input_zero or given.output_zero:
        return None
    terms = context.constant(bias)
    q31, shift = fixedpoint.quantize_multipliers(given.multipliers)
    slots: dict[str, Any] = {"low": given.low, "high": given.high}
    slots |= dict.fromkeys(("shifts", "halves", "rights", "lefts"), 0)
    if context.node.op == "FULLY_CONNECTED":
        rule = EXACT_OF_INT32 if terms is not None and terms.dtype == np.int32 else EXACT
        slots |= {"rule": rule, "multipliers": context.derived("multipliers", lambda: pack(given.multipliers))}
    elif terms is not None and terms.dtype == np.int32:
        slots |= {
            "rule": TFLITE_DOUBLE,
            "multipliers": context.derived("multipliers", lambda: pack(q31.astype(np.int32))),
            "shifts": context.derived("shifts", lambda: pack(shift.astype(np.int32))),
        }
    else:
        q31, right = q31.astype(np.int64), 15 - shift.astype(np.int64)
        values = {
            "multipliers": np.where(q31 < 0x7FFF0000, (q31 + (1 << 15)) >> 16, 0x7FFF),
            "halves": np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0),
            "rights": np.maximum(right, 0),
            "lefts": np.maximum(-right, 0),
        }
        slots["rule"] = WIDE
        for name, value in values.items():
            slots[name] = context.derived(name, partial(pack, value))
    return slots


def lower_arithmetic(context: LoweringContext, walk: dict[str, Any], tiles: int) -> list[Call] | None:
    """ADD, SUB, MUL, MAXIMUM, MINIMUM of int16; walk: slots of both operands."""
    op, (first, second) = context.node.op, context.inputs
    if op in ("MAXIMUM", "MINIMUM"):
        return [Call(ARITHMETIC, f"xnn_{op.lower()}_i16", EXTREMUM_I16, walk, tiles)]
    a, b, output = (per_tensor(kind) for kind in (first, second, context.outputs[0]))
    if op not in ("ADD", "SUB", "MUL") or a is None or b is None or output is None:
        return None
    low, high = fixedpoint.activation_bounds(*activation_range(context.attributes), context.outputs[0])
    params = {slot: walk[slot] for slot in BINARY.slots if slot in walk} | {"low": low, "high": high}
    if op == "MUL":
        multiplier = float(a[0] * b[0] / output[0])  # in float32, as the reference has it
        q31, shift = fixedpoint.quantize_multiplier(multiplier)
        params |= {
            "rule": {"TFLITE_DOUBLE": TFLITE_DOUBLE, "FP32_ROUND_EVEN": FP32_ROUND_EVEN}[context.requantization],
            "scale": multiplier,
            "a_zero": a[1],
            "b_zero": b[1],
            "output_zero": output[1],
            "multiplier": q31,
            "shift": shift,
        }
        return [Call(ARITHMETIC, "xnn_product_i16", PRODUCT_I16, params, tiles)]
    params["sign"] = 1 if op == "ADD" else -1
    shifts = common_scale.powers_of_two(op, (first, second), context.outputs[0])  # type: ignore[arg-type]
    if shifts is not None:
        params |= {"a_shift": min(shifts[0], 31), "b_shift": min(shifts[1], 31)}
        return [Call(ARITHMETIC, "xnn_shifted_sum_i16", SHIFTED_SUM_I16, params, tiles)]
    twice = 2 * float(max(a[0], b[0]))
    left = common_scale.WIDE_LEFT_SHIFT
    reals = {"a": float(a[0]) / twice, "b": float(b[0]) / twice, "output": twice / (1 << left) / float(output[0])}
    for name, (_, zero) in (("a", a), ("b", b), ("output", output)):
        q31, shift = fixedpoint.quantize_multiplier(reals[name])
        params |= {f"{name}_zero": zero, f"{name}_multiplier": q31, f"{name}_shift": shift}
    return [Call(ARITHMETIC, "xnn_sum_of_two_i16", SUM_I16, params | {"left": left}, tiles)]
