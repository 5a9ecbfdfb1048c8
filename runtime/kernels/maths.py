"""Elementary functions in float32, inlined into kernels: no library call, no table, a few units in the last place.

Branch-free where it matters, so that loops over them become vector code. Coefficients: Cephes (expf, logf, tanhf;
Moshier 1992) and Abramowitz and Stegun 7.1.26 for erf.
"""

from __future__ import annotations

from llvmlite import ir
from numba import float32, int32, types
from numba.extending import intrinsic

from runtime.kernels.abi import bits_of_f32, f32_of_bits, inline

INFINITY = float32(float("inf"))
LOG2_E = float32(1.44269504088896341)
LN_2_HIGH = float32(0.693359375)  # exact in few bits, so that n * LN_2_HIGH is exact
LN_2_LOW = float32(-2.12194440e-4)
ROUNDER = float32(12582912.0)  # 1.5 * 2**23: adding it leaves the nearest integer in the low bits
ROUNDER_BITS = int32(0x4B400000)


@intrinsic
def sqrt(typing_context, x):
    """The correctly rounded square root: one instruction, where math.sqrt would call the C library."""

    def codegen(context, builder, signature, args):
        function = builder.module.declare_intrinsic("llvm.sqrt", [ir.FloatType()])
        return builder.call(function, args)

    return types.float32(types.float32), codegen


@inline
def exp(x):
    """e**x; 0 below -87.3 (where float32 turns subnormal), infinity above 88.7."""
    shifted = x * LOG2_E + ROUNDER
    n = shifted - ROUNDER
    r = x - n * LN_2_HIGH
    r = r - n * LN_2_LOW
    y = float32(1.9875691500e-4)
    y = y * r + float32(1.3981999507e-3)
    y = y * r + float32(8.3334519073e-3)
    y = y * r + float32(4.1665795894e-2)
    y = y * r + float32(1.6666665459e-1)
    y = y * r + float32(5.0000001201e-1)
    y = y * r * r + r + float32(1)
    # 2**n in two steps, since n may be 128.
    whole = bits_of_f32(shifted) - ROUNDER_BITS
    half = whole >> int32(1)
    y = y * f32_of_bits((half + int32(127)) << int32(23)) * f32_of_bits((whole - half + int32(127)) << int32(23))
    y = float32(0) if x < float32(-87.3365) else y
    y = INFINITY if x > float32(88.7228) else y
    return x if x != x else y


@inline
def log(x):
    """Natural logarithm; NaN below 0, -infinity at 0. Subnormal numbers count as 0."""
    bits = bits_of_f32(x)
    exponent = (bits >> int32(23)) - int32(126)
    m = f32_of_bits((bits & int32(0x7FFFFF)) | int32(0x3F000000))  # in [0.5, 1)
    small = m < float32(0.707106781186547524)
    e = float32(exponent) - (float32(1) if small else float32(0))
    m = (m + m if small else m) - float32(1)
    z = m * m
    y = float32(7.0376836292e-2)
    y = y * m - float32(1.1514610310e-1)
    y = y * m + float32(1.1676998740e-1)
    y = y * m - float32(1.2420140846e-1)
    y = y * m + float32(1.4249322787e-1)
    y = y * m - float32(1.6668057665e-1)
    y = y * m + float32(2.0000714765e-1)
    y = y * m - float32(2.4999993993e-1)
    y = y * m + float32(3.3333331174e-1)
    y = y * m * z
    y = y + LN_2_LOW * e - float32(0.5) * z
    y = m + y + LN_2_HIGH * e
    y = -INFINITY if x < float32(1.17549435e-38) else y
    y = float32(float("nan")) if x < float32(0) else y
    y = INFINITY if x == INFINITY else y
    return x if x != x else y


@inline
def tanh(x):
    size = abs(x)
    z = x * x
    near = float32(-5.70498872745e-3)
    near = near * z + float32(2.06390887954e-2)
    near = near * z - float32(5.37397155531e-2)
    near = near * z + float32(1.33314422036e-1)
    near = near * z - float32(3.33332819422e-1)
    near = near * z * x + x
    far = float32(1) - float32(2) / (exp(size + size) + float32(1))
    far = -far if x < float32(0) else far
    y = near if size < float32(0.625) else far
    return x if x != x else y


@inline
def logistic(x):
    return float32(1) / (float32(1) + exp(-x))


@inline
def erf(x):
    """Within 2e-7 of the error function."""
    size = abs(x)
    t = float32(1) / (float32(1) + float32(0.3275911) * size)
    y = float32(1.061405429)
    y = y * t - float32(1.453152027)
    y = y * t + float32(1.421413741)
    y = y * t - float32(0.284496736)
    y = y * t + float32(0.254829592)
    y = float32(1) - y * t * exp(-size * size)
    return -y if x < float32(0) else y


@inline
def expm1(x):
    """e**x - 1 for x <= 0, also relative to small results: near 0 its series up to x**8."""
    y = float32(1 / 40320)
    y = y * x + float32(1 / 5040)
    y = y * x + float32(1 / 720)
    y = y * x + float32(1 / 120)
    y = y * x + float32(1 / 24)
    y = y * x + float32(1 / 6)
    y = y * x + float32(1 / 2)
    near, far = x + x * x * y, exp(x) - float32(1)
    return near if x > float32(-0.5) else far


@inline
def erf_near_zero(x):
    """The error function's series up to x**13: for |x| <= 1/2 exact to float32, also relative to small results."""
    square = x * x
    y = float32(1 / 9360)
    y = y * square - float32(1 / 1320)
    y = y * square + float32(1 / 216)
    y = y * square - float32(1 / 42)
    y = y * square + float32(1 / 10)
    y = y * square - float32(1 / 3)
    return float32(1.1283791670955126) * (x + x * square * y)


@inline
def log1p(x):
    """log(1 + x) for x >= 0, with the digits that 1 + x loses where x is small.

    D. Goldberg, "What every computer scientist should know about floating-point arithmetic", 1991, theorem 4.
    """
    whole = float32(1) + x
    lost = whole - float32(1)
    return x if lost == float32(0) else log(whole) * (x / lost)


@inline
def softplus(x):
    """log(1 + e**x) without overflow."""
    positive = x if x > float32(0) else float32(0)
    y = positive + log1p(exp(-abs(x)))
    return x if x != x else y
