"""Parameter block of the resize kernels (no numba here)."""

from runtime.kernels.parameters import ParameterBlock

# A tile is one output row of one image. Tables hold, for each output row or column, the lower and upper input index
# (int64) and how far the position is from the lower one (float32; int8: int64, in 1/1024).
RESIZE = ParameterBlock(
    "RESIZE",
    [
        "input",
        "output",
        "in_height",
        "in_width",
        "out_height",
        "out_width",
        "channels",
        "top",
        "bottom",
        "from_top",
        "left",
        "right",
        "from_left",
    ],
)
