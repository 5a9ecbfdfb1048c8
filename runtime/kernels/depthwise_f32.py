"""Depthwise convolution in float32."""

from __future__ import annotations

from numba import float32

from runtime.kernels.abi import f32, inline
from runtime.kernels.depthwise import LANES, depthwise_kernel
from runtime.kernels.depthwise_parameters import DEPTHWISE_F32
from runtime.simd.vector import F32x16, fma, load, load_first, select, splat, store, store_first


@inline
def bias(p, channel):
    return load(F32x16, p.bias + 4 * channel)


@inline
def multiply_add(p, acc, x, w):
    return fma(load(F32x16, x), load(F32x16, w), acc)


@inline
def multiply_add_first(p, acc, x, w, count):
    return fma(load_first(F32x16, x, count), load(F32x16, w), acc)


@inline
def clamp_and_store(p, acc, channel, target, count):
    low, high = splat(F32x16, float32(p.low)), splat(F32x16, float32(p.high))
    acc = select(acc < low, low, acc)
    acc = select(acc > high, high, acc)
    if count >= LANES:
        store(target, acc)
    else:
        store_first(target, acc, count)


depthwise_f32 = depthwise_kernel(DEPTHWISE_F32, f32, 4, bias, multiply_add, multiply_add_first, clamp_and_store)
