"""Kernels that apply vector operations and the rules of requantization to arrays, for tests."""

from numba import float32

from runtime.kernels.abi import i32, i64, kernel, view
from runtime.kernels.requantize import (
    requantize_double,
    requantize_double_x16,
    requantize_even_x16,
    requantize_exact_x16,
)
from runtime.simd.tile import add_outer_dot_u8_s8, add_outer_product, row_tile, store_tile, zero_tile
from runtime.simd.vector import (
    F32x16,
    F64x16,
    I8x16,
    I32x16,
    I64x16,
    bitcast,
    convert,
    fma,
    largest_lane,
    load,
    load_first,
    load_splat,
    select,
    splat,
    store,
    store_first,
    sum_lanes,
    zero,
)
from tests.support.probe_parameters import RULES, VECTORS


@kernel
def probe_integers(params, begin, end, scratch):
    """Operation number `tile` on two vectors of int32, to line `tile` of the output."""
    p = view(VECTORS, params)
    a, b = load(I32x16, p.a), load(I32x16, p.b)
    shift = b & splat(I32x16, 31)
    at = p.output
    store(at, a + b)
    store(at + 64, a - b)
    store(at + 128, a * b)
    store(at + 192, a & b)
    store(at + 256, a | b)
    store(at + 320, a ^ b)
    store(at + 384, a << shift)
    store(at + 448, a >> shift)
    store(at + 512, select(a < b, a, b))
    store(at + 576, select(a >= b, a, b))
    store(at + 640, convert(I32x16, a == b))
    store(at + 704, convert(I32x16, convert(I8x16, a)))
    store(at + 768, convert(I32x16, convert(I64x16, a) * convert(I64x16, b) >> splat(I64x16, 31)))
    store(at + 832, splat(I32x16, sum_lanes(a)))
    store(at + 896, splat(I32x16, largest_lane(a)))
    store(at + 960, load_splat(I32x16, p.b + 12))
    return 0


@kernel
def probe_floats(params, begin, end, scratch):
    p = view(VECTORS, params)
    a, b = load(F32x16, p.a), load(F32x16, p.b)
    c = a
    c += b
    at = p.output
    store(at, c)
    store(at + 64, a - b)
    store(at + 128, a * b)
    store(at + 192, a / b)
    store(at + 256, fma(a, b, zero(F32x16)))
    store(at + 320, select(a > b, a, b))
    store(at + 384, select(a <= b, a, b))
    store(at + 448, convert(F32x16, convert(I32x16, a)))
    store(at + 512, convert(F32x16, convert(F64x16, a) * convert(F64x16, b)))
    store(at + 576, splat(F32x16, largest_lane(a)))
    store(at + 640, bitcast(F32x16, bitcast(I32x16, a)))
    store(at + 704, splat(F32x16, float32(sum_lanes(convert(F64x16, a)))))
    return 0


@kernel
def probe_partial(params, begin, end, scratch):
    """Copies the first `count` elements of int8 and float32 vectors."""
    p = view(VECTORS, params)
    store_first(p.output, load_first(F32x16, p.a, p.count), p.count)
    store_first(p.output + 64, load_first(I8x16, p.b, p.count), p.count)
    store(p.output + 80, load_first(I8x16, p.b, p.count))
    return 0


@kernel
def probe_tiles(params, begin, end, scratch):
    """(3, count) float32 `a` times (count, 32) `b`; (2, count) unsigned times (count, 16, 4) signed bytes likewise."""
    p = view(VECTORS, params)
    acc = zero_tile(F32x16, 3, 2)
    for k in range(p.count):
        acc = add_outer_product(acc, p.a + 4 * k, 4 * p.count, p.b + 128 * k)
    store_tile(acc, p.output, 128)
    dots = row_tile(I32x16, 2, 1, p.c)
    for k in range(p.count):
        dots = add_outer_dot_u8_s8(dots, p.a + 4 * k, 4 * p.count, p.b + 64 * k)
    store_tile(dots, p.output + 3 * 128, 64)
    return 0


@kernel
def probe_requantize(params, begin, end, scratch):
    """Accumulators by every rule: int64 in 16 lanes of output each for scalar, double, even and exact."""
    p = view(RULES, params)
    low, high = float32(p.low), float32(p.high)
    for tile in range(begin, end):
        at = 64 * tile
        acc, q31, shift = load(I32x16, p.acc + at), load(I32x16, p.q31 + at), load(I32x16, p.shift + at)
        for i in range(16):
            value = requantize_double(
                i64(p.wide_acc)[16 * tile + i], i64(p.wide_q31)[16 * tile + i], i64(p.wide_shift)[16 * tile + i]
            )
            i32(p.output + 4 * at)[i] = value
        store(p.output + 4 * at + 64, requantize_double_x16(acc, q31, shift))
        scale = load(F32x16, p.scale + at)
        store(p.output + 4 * at + 128, requantize_even_x16(acc, scale, splat(F32x16, low), splat(F32x16, high)))
        exact = load(F64x16, p.wide_scale + 2 * at)
        store(p.output + 4 * at + 192, requantize_exact_x16(acc, exact, splat(F64x16, p.low), splat(F64x16, p.high)))
    return 0
