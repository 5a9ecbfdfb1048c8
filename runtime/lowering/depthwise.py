"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

import math

import numpy as np

from runtime.kernels.depthwise_parameters import DEPTHWISE_F32, DEPTHWISE_I8
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.panels import round_up
from runtime.lowering.requantization import requantization
from schema.ops.attributes import activation_range
from schema.ops.windows import along, pad_amounts

LANES = 16


def lower(context: LoweringContext) -> list[Call] | None:
    x, weights, output = context.inputs[0], context.constant(1), context.outputs[0]
    bias = context.constant(2)
    has_bias = len(context.inputs) > 2 and context.inputs[2] is not None
    if x is None or weights is None or (has_bias and bias is None) or x.dtype != output.dtype:
        return None
    if output.dtype not in (np.float32, np.int8) or 0 in (output.shape or ()):
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
        "weights": context.packed("depthwise", lambda: _padded(weights[0])),
        **{f"in_{axis}": n for axis, n in zip("hw", size, strict=True)},
        **{f"kernel_{axis}": n for axis, n in zip("hw", taps, strict=True)},
        **{f"stride_{axis}": n for axis, n in zip("hw", strides, strict=True)},
        **{f"dilation_{axis}": n for axis, n in zip("hw", dilations, strict=True)},
        **{f"pad_{axis}": before for axis, (before, _) in zip("hw", pads, strict=True)},
    }
    terms = np.zeros(channels, np.float32 if is_float else np.int32) if bias is None else bias
    params["bias"] = context.derived("bias", lambda: _padded(terms))
    if is_float:
        params["low"], params["high"] = activation_range(context.attributes)
        family, block = "depthwise_f32", DEPTHWISE_F32
    else:
        scaling = requantization(context, 0, 1, channels)
        if scaling is None:
            return None
        params |= scaling.parameters() | {
            "input_zero": scaling.input_zero,
            "multipliers": context.derived("multipliers", lambda: _padded(scaling.factors()[0])),
            "shifts": context.derived("shifts", lambda: _padded(scaling.factors()[1])),
        }
        family, block = "depthwise_i8", DEPTHWISE_I8
    repeated = taps[0] * size[1] * channels * output.dtype.itemsize if channels != in_channels else 0
    work = width * channels * math.prod(taps)
    grain = max(1, min(4, (1 << 15) // work))
    return [Call(f"runtime.kernels.{family}", f"xnn_{family}", block, params, batch * height, grain, repeated)]


def _padded(values: np.ndarray) -> np.ndarray:
    """Zeros after the channels (the last axis), up to a multiple of 16."""
    missing = round_up(values.shape[-1], LANES) - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
