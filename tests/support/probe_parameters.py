"""Parameters of the probe kernels."""

from runtime.kernels.parameters import ParameterBlock

PROBE = ParameterBlock("PROBE", ["source", "target", "row", "scale"], floats=["scale"])
VECTORS = ParameterBlock("VECTORS", ["a", "b", "c", "output", "count"])
RULES = ParameterBlock(
    "RULES",
    ["acc", "q31", "shift", "scale", "wide_acc", "wide_q31", "wide_shift", "wide_scale", "output", "low", "high"],
    floats=["low", "high"],
)
