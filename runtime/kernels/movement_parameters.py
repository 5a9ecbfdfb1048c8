"""Parameter blocks of the kernels that move data (no numba here)."""

from runtime.kernels.parameters import ParameterBlock

# A tile is one row: `count` elements along the innermost dimension, of `outer` rows in C order. Strides are bytes
# and may be 0 or negative.
COPY = ParameterBlock(
    "COPY",
    [
        "source",
        "target",
        "count",
        "source_step",
        "target_step",
        "outer_rank",
        "outer",  # int64 array of sizes
        "source_strides",  # int64 arrays
        "target_strides",
    ],
)

# A tile is `chunk` of `count` elements; value: the element's bits.
FILL = ParameterBlock("FILL", ["target", "count", "chunk", "value"])
