"""Bilinear resizing: the sum of four weighted neighbours, added in TFLite's order (schema/ops/resize_bilinear.py)."""

from __future__ import annotations

from numba import float32, int8, int32

from runtime.kernels.abi import f32, i8, i64, kernel, truncated_divide, view
from runtime.kernels.resize_parameters import RESIZE


@kernel
def resize_bilinear_f32(params, begin, end, scratch):
    p = view(RESIZE, params)
    channels = p.channels
    row_bytes = 4 * p.in_width * channels
    one = float32(1)
    for tile in range(begin, end):
        image = truncated_divide(tile, p.out_height)
        y = tile - image * p.out_height
        base = p.input + image * p.in_height * row_bytes
        top, bottom = base + i64(p.top)[y] * row_bytes, base + i64(p.bottom)[y] * row_bytes
        fy = f32(p.from_top)[y]
        for x in range(p.out_width):
            left, right = 4 * channels * i64(p.left)[x], 4 * channels * i64(p.right)[x]
            fx = f32(p.from_left)[x]
            a, b = f32(top + left), f32(bottom + left)
            c, d = f32(top + right), f32(bottom + right)
            out = f32(p.output + 4 * (tile * p.out_width + x) * channels)
            for i in range(channels):
                out[i] = (
                    a[i] * (one - fy) * (one - fx) + b[i] * fy * (one - fx) + c[i] * (one - fy) * fx + d[i] * fy * fx
                )
    return 0


@kernel
def resize_bilinear_i8(params, begin, end, scratch):
    p = view(RESIZE, params)
    channels = p.channels
    row_bytes = p.in_width * channels
    one, half = int32(1024), int32(1 << 19)
    for tile in range(begin, end):
        image = truncated_divide(tile, p.out_height)
        y = tile - image * p.out_height
        base = p.input + image * p.in_height * row_bytes
        top, bottom = base + i64(p.top)[y] * row_bytes, base + i64(p.bottom)[y] * row_bytes
        fy = int32(i64(p.from_top)[y])
        for x in range(p.out_width):
            left, right = channels * i64(p.left)[x], channels * i64(p.right)[x]
            fx = int32(i64(p.from_left)[x])
            a, b, c, d = i8(top + left), i8(bottom + left), i8(top + right), i8(bottom + right)
            wa, wb = int32((one - fy) * (one - fx)), int32(fy * (one - fx))
            wc, wd = int32((one - fy) * fx), int32(fy * fx)
            out = i8(p.output + (tile * p.out_width + x) * channels)
            for i in range(channels):
                total = int32(int32(a[i]) * wa + int32(b[i]) * wb + int32(c[i]) * wc + int32(d[i]) * wd)
                size = int32((abs(total) + half) >> int32(20))
                out[i] = int8(-size if total < 0 else size)
    return 0
