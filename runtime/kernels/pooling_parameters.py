"""Parameter block of the pooling kernels (no numba here). A tile is one row of output pixels."""

from runtime.kernels.parameters import ParameterBlock

POOL = ParameterBlock(
    "POOL",
    [
        "input",
        "output",
        "channels",
        *[f"{what}_{axis}" for what in ("in", "out", "kernel", "stride", "pad") for axis in "dhw"],
        "low",
        "high",
    ],
    floats=["low", "high"],
)
