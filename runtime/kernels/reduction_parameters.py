"""Parameter block of the reductions (no numba here).

The input is (outer, reduced, inner), the output (outer, inner). A tile is up to `chunk` inner elements of one outer
index. The result is sum * factor for floats; for integers (sum - count * zero_point) times multiplier and shift.
"""

from runtime.kernels.parameters import ParameterBlock

REDUCTION = ParameterBlock(
    "REDUCTION",
    [
        "input",
        "output",
        "reduced",
        "inner",
        "chunk",
        "chunks",  # tiles of one outer index
        "factor",
        "offset",  # integers: added to the sum
        "multiplier",
        "shift",
        "zero_point",
    ],
    floats=["factor"],
)
