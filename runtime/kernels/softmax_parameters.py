"""Parameter blocks of the softmax kernels (no numba here). A tile is one vector of `count` numbers."""

from runtime.kernels.parameters import ParameterBlock

SOFTMAX_F32 = ParameterBlock("SOFTMAX_F32", ["input", "output", "count", "beta"], floats=["beta"])

# What SOFTMAX behind a mask knows besides: which row of the mask goes with a vector, its index being taken apart into
# those of three groups of dimensions, whose strides are in rows, 0 where the mask is broadcast. width: bytes of a row.
# whole: a row of zeros and one of ones, as long as a vector, for rows of one byte; 0 where rows are as long as vectors.
MASK = ["mask", "width", "whole", "outer_stride", "middle", "middle_stride", "inner", "inner_stride"]

# For d = max(x) - x in 0..255, int32 arrays: exponentials exp(-beta d) in Q0, terms the same in Q12, as the sum takes
# them (0 where they are too small to count). counted: how many d count. Behind these is 0 for what is not let in.
SOFTMAX_I8 = ParameterBlock("SOFTMAX_I8", ["input", "output", "count", "exponentials", "terms", "counted"])

# multiplier, shift: from differences of inputs to those of the table of exponentials. exponentials, inverses: int64
# tables of 513 values (schema.ops.softmax).
SOFTMAX_I16 = ParameterBlock(
    "SOFTMAX_I16", ["input", "output", "count", "multiplier", "shift", "exponentials", "inverses"]
)

MASKED_F32 = ParameterBlock("MASKED_F32", [*SOFTMAX_F32.slots, *MASK], floats=SOFTMAX_F32.floats)
MASKED_I8 = ParameterBlock("MASKED_I8", [*SOFTMAX_I8.slots, *MASK])
MASKED_I16 = ParameterBlock("MASKED_I16", [*SOFTMAX_I16.slots, *MASK])
