"""Parameters of the probe kernels."""

from runtime.kernels.parameters import ParameterBlock

PROBE = ParameterBlock("PROBE", ["source", "target", "row", "scale"], floats=["scale"])
