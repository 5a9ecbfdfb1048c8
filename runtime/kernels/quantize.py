"""float32 -> int8, int16: round(x / scale) + zero_point, ties away from zero, saturated (fixedpoint.quantize)."""

from __future__ import annotations

from numba import float32, int8, int16, int32

from runtime.kernels.abi import f32, i8, i16, inline, kernel, view
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


def _quantize(made, dtype, lowest, highest):
    lowest, highest = float32(lowest), float32(highest)

    @kernel
    def quantize(params, begin, end, scratch):
        p = view(QUANTIZE, params)
        x, out = f32(p.input), made(p.output)
        scale, zero_point = float32(p.scale), float32(p.zero_point)
        for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
            value = x[i] / scale
            value = min(max(value, -FAR), FAR)
            value = round_half_away(value) + zero_point
            value = min(max(value, lowest), highest)
            out[i] = dtype(int32(value))
        return 0

    return quantize


quantize_f32_i8 = _quantize(i8, int8, -128, 127)
quantize_f32_i16 = _quantize(i16, int16, -32768, 32767)
