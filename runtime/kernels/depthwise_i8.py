"""Depthwise convolution in int8: sums of w * (x - zero_point), where padding adds nothing."""

from __future__ import annotations

from runtime.kernels.abi import i8, inline
from runtime.kernels.depthwise import LANES, depthwise_kernel
from runtime.kernels.depthwise_parameters import DEPTHWISE_I8
from runtime.kernels.epilogue_i8 import requantize_channels
from runtime.simd.vector import I8x16, I16x16, I32x16, convert, load, load_first, splat, store, store_first


@inline
def bias(p, channel):
    return load(I32x16, p.bias + 4 * channel)


@inline
def add_products(p, acc, x, w):
    # In 16 bits until the product, so that LLVM knows that one instruction multiplies them.
    centred = convert(I16x16, x) - splat(I16x16, p.input_zero)
    return acc + convert(I32x16, centred) * convert(I32x16, convert(I16x16, load(I8x16, w)))


@inline
def multiply_add(p, acc, x, w):
    return add_products(p, acc, load(I8x16, x), w)


@inline
def multiply_add_first(p, acc, x, w, count):
    return add_products(p, acc, load_first(I8x16, x, count), w)


@inline
def requantize_and_store(p, acc, channel, target, count):
    value = requantize_channels(p, acc, channel)
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


depthwise_i8 = depthwise_kernel(DEPTHWISE_I8, i8, 1, bias, multiply_add, multiply_add_first, requantize_and_store)
