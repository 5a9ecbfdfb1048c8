"""A kernel that needs a symbol from outside: the compiler must refuse it."""

import math

from runtime.kernels.abi import f64, kernel


@kernel
def calls_libm(params, begin, end, scratch):
    f64(params)[0] = math.exp(f64(params)[1])
    return 0
