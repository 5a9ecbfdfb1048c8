"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels.depthwise_parameters import DEPTHWISE_F32, DEPTHWISE_I8, DEPTHWISE_QUADS_I8, TABLE_BYTES
from runtime.kernels.table import find_kernel
from runtime.kernels.wide_parameters import DEPTHWISE_I16, RUN
from runtime.lowering import wide
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.lane_factors import in_lane_order, lane_factors
from runtime.lowering.panels import panel_count, round_up
from runtime.lowering.requantization import Requantization, requantization
from schema.ops.attributes import activation_range
from schema.ops.windows import along, pad_amounts

LANES = 16
LINE = 64  # bytes
QUAD_VECTORS = 4


def lower(context: LoweringContext) -> list[Call] | None:
    x, weights, output = context.inputs[0], context.constant(1), context.outputs[0]
    if context.before is not None:
        x = context.before.outputs[0]
    bias = context.constant(2)
    has_bias = len(context.inputs) > 2 and context.inputs[2] is not None
    if x is None or weights is None or (has_bias and bias is None) or x.dtype != output.dtype:
        return None
    if output.dtype not in (np.float32, np.int8, np.int16) or 0 in (output.shape or ()):
        return None
    is_float = output.dtype == np.float32
    batch, height, width, channels = output.shape or ()
    _, *size, in_channels = x.shape or ()
    taps = weights.shape[1:3]
    pads = pad_amounts(context.attributes, "hw", size, taps)
    strides, dilations = along(context.attributes, "stride", "hw"), along(context.attributes, "dilation", "hw")
    params = {
        "input": context.input(0),
        "output": context.output(),
        "channels": channels,
        "multiplier": channels // in_channels,
        "out_h": height,
        "out_w": width,
        **{f"in_{axis}": n for axis, n in zip("hw", size, strict=True)},
        **{f"kernel_{axis}": n for axis, n in zip("hw", taps, strict=True)},
        **{f"stride_{axis}": n for axis, n in zip("hw", strides, strict=True)},
        **{f"dilation_{axis}": n for axis, n in zip("hw", dilations, strict=True)},
        **{f"pad_{axis}": before for axis, (before, _) in zip("hw", pads, strict=True)},
    }
    grain = max(1, min(4, (1 << 15) // (width * channels * math.prod(taps))))
    terms = np.zeros(channels, np.float32 if is_float else np.int32) if bias is None else bias
    if is_float:
        params["low"], params["high"] = activation_range(context.attributes)
        family, block = "depthwise_f32", DEPTHWISE_F32
        narrow = taps == (3, 3) and dilations[1] == 1 and strides[1] <= 2 and channels == in_channels
        if narrow and find_kernel("depthwise_3x3", "float32"):
            family = "depthwise_f32_3x3"
    elif output.dtype == np.int16:
        slots = wide.scaling_of(context, 0, 1, 2, channels, _padded)
        if slots is None or math.prod(taps) > RUN:
            return None
        params |= slots
        family, block = "depthwise_i16", DEPTHWISE_I16
        terms = terms.astype(np.int64)
    else:
        scaling = requantization(context, 0, 1, channels)
        if scaling is None:
            return None
        if channels == in_channels:
            call = _quads(context, params, scaling, terms, grain)
            if call is not None:
                return [call]
        params |= scaling.parameters() | {
            "input_zero": scaling.input_zero,
            "multipliers": context.derived("multipliers", lambda: _padded(scaling.factors()[0])),
            "shifts": context.derived("shifts", lambda: _padded(scaling.factors()[1])),
        }
        family, block = "depthwise_i8", DEPTHWISE_I8
    params["bias"] = context.derived("bias", lambda: _padded(terms))
    stored = np.int16 if output.dtype == np.int16 else weights.dtype
    params["weights"] = context.packed(("depthwise", stored), lambda: _padded(weights[0].astype(stored)))
    scratch = taps[0] * size[1] * channels * output.dtype.itemsize if channels != in_channels else room(channels)
    return [Call(f"runtime.kernels.{family}", f"xnn_{family}", block, params, batch * height, grain, scratch)]


def _quads(
    context: LoweringContext, params: dict[str, Any], scaling: Requantization, bias: np.ndarray, grain: int
) -> Call | None:
    """The kernel for dot product instructions; None where the machine or these numbers do not suit it."""
    kernel, weights = find_kernel("depthwise_quads", "int8"), context.constant(1)
    if kernel is None or weights is None:
        return None
    weights = weights[0].astype(np.int64)
    # Taps are x + 128, so that sum w * (x - zero) = sum w * (x + 128) - (128 + zero) * sum w.
    bias = bias.astype(np.int64) - (128 + scaling.input_zero) * weights.sum(axis=(0, 1))
    products = 255 * np.abs(weights).sum(axis=(0, 1))
    factors = lane_factors(scaling, bias, products, QUAD_VECTORS)
    if factors is None:
        return None

    def pack() -> np.ndarray:
        taps_h, taps_w, channels = weights.shape
        blocks = panel_count(channels, kernel.width)
        padded = np.zeros((round_up(taps_h, 4), taps_w, blocks * kernel.width), np.int8)
        padded[:taps_h, :, :channels] = weights
        parts = in_lane_order(padded, QUAD_VECTORS).reshape(
            -1, 4, taps_w, padded.shape[2] // kernel.width, kernel.width
        )
        return np.ascontiguousarray(parts.transpose(3, 2, 0, 4, 1))

    params = params | {
        "weights": context.packed("quads", pack),
        "factors": context.derived("quads factors", lambda: factors),
        "input_zero": scaling.input_zero,
        **scaling.parameters(),
    }
    columns = (params["out_w"] - 1) * params["stride_w"] + (params["kernel_w"] - 1) * params["dilation_w"] + 1
    scratch = 64 + columns * round_up(params["kernel_h"], 4) * kernel.width
    tiles = math.prod((context.outputs[0].shape or ())[:2])
    return Call(kernel.family, kernel.symbol, DEPTHWISE_QUADS_I8, params, tiles, grain, scratch)


def room(channels: int) -> int:
    """Bytes that the float32 kernel for 3x3 needs."""
    return TABLE_BYTES + round_up(4 * channels, LINE)


def _padded(values: np.ndarray) -> np.ndarray:
    """Zeros after the channels (the last axis), up to a multiple of 16."""
    missing = round_up(values.shape[-1], LANES) - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
