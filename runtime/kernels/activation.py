"""Functions of one float32 number. A tile is a chunk of consecutive elements."""

from __future__ import annotations

from numba import float32

from runtime.kernels.abi import f32, inline, kernel, view
from runtime.kernels.elementwise import clamp
from runtime.kernels.elementwise_parameters import UNARY
from runtime.kernels.maths import erf, erf_near_zero, exp, expm1, log, logistic, softplus, sqrt, tanh

# Klambauer et al., "Self-Normalizing Neural Networks", 2017.
SELU_ALPHA = float32(1.6732632423543772848)
SELU_SCALE = float32(1.0507009873554804934)
SQRT_HALF = float32(0.70710678118654752440)
SQRT_2_OVER_PI = float32(0.79788456080286535588)


def _unary(compute):
    """A kernel for `compute(x, alpha, beta)`."""

    def run(params, begin, end, scratch):
        p = view(UNARY, params)
        x, out = f32(p.input), f32(p.output)
        alpha, beta = float32(p.alpha), float32(p.beta)
        for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
            out[i] = compute(x[i], alpha, beta)
        return 0

    return kernel(run)


@inline
def _elu(x, alpha, beta):
    low = x if x < float32(0) else float32(0)
    return x if x > float32(0) or x != x else alpha * expm1(low)


@inline
def _selu(x, alpha, beta):
    return SELU_SCALE * _elu(x, SELU_ALPHA, beta)


@inline
def _erf(x, alpha, beta):
    far, near = erf(x), erf_near_zero(x)
    return near if abs(x) < float32(0.5) else far


@inline
def _gelu(x, alpha, beta):
    return float32(0.5) * x * (float32(1) + erf(x * SQRT_HALF))


@inline
def _gelu_approximate(x, alpha, beta):
    return float32(0.5) * x * (float32(1) + tanh(SQRT_2_OVER_PI * (x + float32(0.044715) * x * x * x)))


@inline
def _hard_swish(x, alpha, beta):
    return x * clamp(x + float32(3), float32(0), float32(6)) * float32(1 / 6)


clamp_f32 = _unary(inline(lambda x, low, high: clamp(x, low, high)))
leaky_relu_f32 = _unary(inline(lambda x, alpha, beta: x if x > float32(0) or x != x else alpha * x))
elu_f32 = _unary(_elu)
selu_f32 = _unary(_selu)
gelu_f32 = _unary(_gelu)
gelu_approximate_f32 = _unary(_gelu_approximate)
swish_f32 = _unary(inline(lambda x, alpha, beta: x * logistic(x)))
hard_swish_f32 = _unary(_hard_swish)
logistic_f32 = _unary(inline(lambda x, alpha, beta: logistic(x)))
tanh_f32 = _unary(inline(lambda x, alpha, beta: tanh(x)))
softplus_f32 = _unary(inline(lambda x, alpha, beta: softplus(x)))
softsign_f32 = _unary(inline(lambda x, alpha, beta: x / (float32(1) + abs(x))))
exp_f32 = _unary(inline(lambda x, alpha, beta: exp(x)))
log_f32 = _unary(inline(lambda x, alpha, beta: log(x)))
erf_f32 = _unary(_erf)
sqrt_f32 = _unary(inline(lambda x, alpha, beta: sqrt(x)))
rsqrt_f32 = _unary(inline(lambda x, alpha, beta: float32(1) / sqrt(x)))
square_f32 = _unary(inline(lambda x, alpha, beta: x * x))
reciprocal_f32 = _unary(inline(lambda x, alpha, beta: float32(1) / x))
abs_f32 = _unary(inline(lambda x, alpha, beta: abs(x)))
neg_f32 = _unary(inline(lambda x, alpha, beta: -x))
