"""MAX_POOL and AVERAGE_POOL over two and three axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runtime.kernels.pooling_parameters import POOL
from runtime.lowering.base import Call, LoweringContext
from schema import fixedpoint
from schema.ops.attributes import activation_range
from schema.ops.windows import along, pad_amounts

SUFFIXES = {np.dtype(np.float32): "f32", np.dtype(np.int8): "i8", np.dtype(np.int16): "i16"}
MOST_TAPS = 1 << 15  # of int16 numbers whose sum is an int32


def lower(context: LoweringContext) -> list[Call] | None:
    x, output, attributes = context.inputs[0], context.outputs[0], context.attributes
    suffix = SUFFIXES.get(output.dtype)
    if x is None or suffix is None or x.dtype != output.dtype or 0 in (output.shape or ()):
        return None
    axes = "dhw" if context.node.op.endswith("3D") else "hw"
    size, out = (x.shape or ())[1:-1], (output.shape or ())[1:-1]
    kernel, strides = along(attributes, "filter", axes), along(attributes, "stride", axes)
    pads = pad_amounts(attributes, axes, size, kernel)
    params: dict[str, Any] = {f"{what}_d": 1 for what in ("in", "out", "kernel", "stride")} | {"pad_d": 0}
    for i, axis in enumerate(axes):
        params |= {
            f"in_{axis}": size[i],
            f"out_{axis}": out[i],
            f"kernel_{axis}": kernel[i],
            f"stride_{axis}": strides[i],
            f"pad_{axis}": pads[i][0],
        }
    low, high = activation_range(attributes) if hasattr(attributes, "activation") else (-math.inf, math.inf)
    if suffix == "i16" and math.prod(kernel) > MOST_TAPS:
        return None
    if suffix != "f32":
        if output.quantization is None:
            low, high = np.iinfo(output.dtype).min, np.iinfo(output.dtype).max
        else:
            low, high = fixedpoint.activation_bounds(low, high, output)
    channels = output.shape[-1] if output.shape else 1
    params |= {"input": context.input(0), "output": context.output(), "channels": channels, "low": low, "high": high}
    name = "max_pool" if context.node.op.startswith("MAX") else "average_pool"
    rows = math.prod(output.shape or ()) // (out[-1] * channels)
    work = out[-1] * channels * math.prod(kernel)
    grain = max(1, min(4, (1 << 14) // work))
    return [Call(f"runtime.kernels.pooling_{suffix}", f"xnn_{name}_{suffix}", POOL, params, rows, grain)]
