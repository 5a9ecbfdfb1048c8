"""Parameter blocks of the elementwise kernels (no numba here)."""

from runtime.kernels.parameters import ParameterBlock

_WALK = [
    "a",
    "b",
    "output",
    "inner",  # elements of the innermost run
    "a_step",  # 1, or 0 where `a` is broadcast along the run
    "b_step",
    "chunk",  # elements of a run that one tile computes
    "chunks",  # tiles of a run
    "outer_rank",
    "outer",  # int64 array: sizes of the outer dimensions
    "a_strides",  # int64 arrays: elements
    "b_strides",
]

# What is computed is clamped to low..high.
BINARY = ParameterBlock("BINARY", [*_WALK, "low", "high"], floats=["low", "high"])

# table: int8, output for each pair, at 256 * (a + 128) + (b + 128).
BINARY_TABLE = ParameterBlock("BINARY_TABLE", [*_WALK, "table"])

# sum: what runtime.kernels.linear_sum needs of a function that is proven, 0 where there is none.
BINARY_LINEAR = ParameterBlock(
    "BINARY_LINEAR",
    [*_WALK, "sum", "table", "a_factor", "b_factor", "offset", "margin", "low", "high"],
    floats=["a_factor", "b_factor", "offset", "margin", "low", "high"],
)

# A tile is `chunk` consecutive elements of `count`.
UNARY = ParameterBlock("UNARY", ["input", "output", "count", "chunk", "alpha", "beta"], floats=["alpha", "beta"])

# table: output for each int8, at x + 128.
UNARY_TABLE = ParameterBlock("UNARY_TABLE", ["input", "output", "count", "chunk", "table"])

QUANTIZE = ParameterBlock(
    "QUANTIZE", ["input", "output", "count", "chunk", "scale", "zero_point"], floats=["scale", "zero_point"]
)

# Functions of elements, one after another. A tile is `block` elements of `count`, so many that they stay in the cache
# between one function and the next.
CHAIN = ParameterBlock("CHAIN", ["input", "output", "count", "block", "first"])

# One function of a chain, by the kernel that computes it alone, on a copy of that kernel's parameters.
CHAIN_STAGE = ParameterBlock(
    "CHAIN_STAGE",
    [
        "next",  # the stage after it, 0 at the end
        "kernel",  # its address
        "params",  # its parameters, `slots` of them; those with a place below are set for each block
        "slots",
        "chained",  # place of the operand that the stage before has made
        "other",  # place of the other operand, -1 where there is none
        "other_input",  # where that one starts
        "other_step",  # bytes by which it moves with each element: 4, or 0 for one that is the same in all blocks
        "output",
        "extent",  # place of the number of elements; -1 where the other operand repeats after each run, a tile
        "run",  # elements of such a run
    ],
)
