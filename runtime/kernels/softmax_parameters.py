"""Parameter blocks of the softmax kernels (no numba here). A tile is one vector of `count` numbers."""

from runtime.kernels.parameters import ParameterBlock

SOFTMAX_F32 = ParameterBlock("SOFTMAX_F32", ["input", "output", "count", "beta"], floats=["beta"])

# For d = max(x) - x in 0..255, int32 arrays: exponentials exp(-beta d) in Q0, terms the same in Q12, as the sum takes
# them (0 where they are too small to count). counted: how many d count.
SOFTMAX_I8 = ParameterBlock("SOFTMAX_I8", ["input", "output", "count", "exponentials", "terms", "counted"])

# multiplier, shift: from differences of inputs to those of the table of exponentials. exponentials, inverses: int64
# tables of 513 values (schema.ops.softmax).
SOFTMAX_I16 = ParameterBlock(
    "SOFTMAX_I16", ["input", "output", "count", "multiplier", "shift", "exponentials", "inverses"]
)
