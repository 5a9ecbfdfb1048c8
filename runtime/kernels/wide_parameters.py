"""Parameter blocks of the kernels for int16 activations with int8 weights (no numba here)."""

from runtime.kernels.depthwise_parameters import DEPTHWISE_I8
from runtime.kernels.elementwise_parameters import BINARY
from runtime.kernels.matmul_parameters import MATMUL_I8
from runtime.kernels.parameters import ParameterBlock

WIDE = 3
"""A rule beside those of matmul_parameters: int64 sums times int64 `multipliers` of 16 bits, plus `halves`, shifted
right by `rights` and left by `lefts`, all int64.
"""

EXACT_OF_INT32 = 4
"""EXACT, of sums that wrap to 32 bits first."""

RUN = 256  # products of int16 and int8 whose sum is an int32

# Sums are int64, and so is the bias; zero points are 0.
_SCALING = ["rule", "multipliers", "shifts", "halves", "rights", "lefts", "low", "high"]
_REPLACED = {"input_zero", "zero_point", "padding", "factors", *_SCALING}

# Panels are 16 channels wide: [group][panel][depth / 2][16][2] int8, zeros after an odd depth.
MATMUL_I16 = ParameterBlock("MATMUL_I16", [*[s for s in MATMUL_I8.slots if s not in _REPLACED], *_SCALING])

# Weights are int16.
DEPTHWISE_I16 = ParameterBlock("DEPTHWISE_I16", [*[s for s in DEPTHWISE_I8.slots if s not in _REPLACED], *_SCALING])

_WALK = [slot for slot in BINARY.slots if slot not in ("low", "high")]

# MAXIMUM and MINIMUM.
EXTREMUM_I16 = ParameterBlock("EXTREMUM_I16", _WALK)

# ADD and SUB: (a - a_zero) << left, scaled; so too b; their sum scaled. Scaling is by q31 * 2**(shift - 31).
SUM_I16 = ParameterBlock(
    "SUM_I16",
    [
        *_WALK,
        "sign",  # of b
        "left",
        *[f"{of}_{what}" for of in ("a", "b", "output") for what in ("zero", "multiplier", "shift")],
        "low",
        "high",
    ],
)

# ADD and SUB where scales are powers of two: both operands shifted right, rounded.
SHIFTED_SUM_I16 = ParameterBlock("SHIFTED_SUM_I16", [*_WALK, "sign", "a_shift", "b_shift", "low", "high"])

# MUL. scale: what FP32_ROUND_EVEN multiplies with.
PRODUCT_I16 = ParameterBlock(
    "PRODUCT_I16",
    [*_WALK, "rule", "scale", "a_zero", "b_zero", "output_zero", "multiplier", "shift", "low", "high"],
    floats=["scale"],
)
