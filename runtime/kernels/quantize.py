"""float32 -> int8: round(x / scale) + zero_point, ties away from zero, saturated (schema.fixedpoint.quantize)."""

from __future__ import annotations

from numba import float32, int8, int32

from runtime.kernels.abi import f32, i8, inline, kernel, view
from runtime.kernels.elementwise_parameters import QUANTIZE

FAR = float32(65536)  # beyond every saturation point, and small enough for int32


@inline
def round_half_away(value):
    """Nearest whole float32, ties away from zero, of |value| <= 65536."""
    whole = float32(int32(value))
    rest = value - whole
    if rest >= float32(0.5):
        return whole + float32(1)
    if rest <= float32(-0.5):
        return whole - float32(1)
    return whole


@kernel
def quantize_f32_i8(params, begin, end, scratch):
    p = view(QUANTIZE, params)
    x, out = f32(p.input), i8(p.output)
    scale, zero_point = float32(p.scale), float32(p.zero_point)
    for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
        value = x[i] / scale
        value = min(max(value, -FAR), FAR)
        value = round_half_away(value) + zero_point
        value = min(max(value, float32(-128)), float32(127))
        out[i] = int8(int32(value))
    return 0
