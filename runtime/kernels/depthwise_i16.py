"""Depthwise convolution of int16 with int8 weights, which are held as int16. Windows have no more than RUN taps."""

from __future__ import annotations

from runtime.kernels.abi import i16, inline
from runtime.kernels.depthwise import LANES, depthwise_kernel
from runtime.kernels.epilogue_i16 import requantize_wide_channels
from runtime.kernels.wide_parameters import DEPTHWISE_I16
from runtime.simd.vector import I16x16, I32x16, I64x16, convert, load, load_first, store, store_first, zero


@inline
def start(p, channel):
    return zero(I32x16)


@inline
def add_products(acc, x, w):
    return acc + convert(I32x16, x) * convert(I32x16, load(I16x16, w))


@inline
def multiply_add(p, acc, x, w):
    return add_products(acc, load(I16x16, x), w)


@inline
def multiply_add_first(p, acc, x, w, count):
    return add_products(acc, load_first(I16x16, x, count), w)


@inline
def requantize_and_store(p, acc, channel, target, count):
    total = convert(I64x16, acc) + load(I64x16, p.bias + 8 * channel)
    value = requantize_wide_channels(p, total, channel)
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


depthwise_i16 = depthwise_kernel(DEPTHWISE_I16, i16, 2, start, multiply_add, multiply_add_first, requantize_and_store)
