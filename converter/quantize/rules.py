"""How each op is quantized: which of its inputs hold real numbers, and where the scales come from.

The meaning of the integers is that of `schema/ops` (the TFLite int8 and 16x8 specifications); these tables say which
ops are worth it, one with int8 activations and one with int16.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schema import ops
from schema.quantization import Quantization

INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)


class Scales(enum.Enum):
    """Where the output's scale and zero point come from."""

    FREE = "from the range of the output"
    SHARED = "one for all inputs and the output: integers are moved or compared as they are"
    FIXED = "given by the op"
    INDICES = "the output is no real number"
    CARRIED = "each operand has that of its place in the loop's body, and so has the result"


@dataclass(frozen=True)
class Weights:
    """Operands of a linear op that are stored: int8 weights symmetric per channel of `axis`, and a bias."""

    weights: int
    axis: int
    bias: int


@dataclass(frozen=True)
class Rule:
    """data: inputs that become activations, None for all. fixed: the output's parameters where scales is FIXED.

    costly: worth its integer kernel or its int8 weights whatever surrounds it. Other ops stay float between float
    ones. dtype: of the activations. slopes: input that is int8 beside int16 activations, and has to be constant.
    """

    scales: Scales
    data: tuple[int, ...] | None = (0,)
    weights: Weights | None = None
    fixed: Quantization | None = None
    costly: bool = False
    dtype: np.dtype = INT8
    slopes: int | None = None

    def data_inputs(self, count: int) -> Sequence[int]:
        return range(count) if self.data is None else self.data


def _linear(data: int, weights: int, axis: int, bias: int) -> Rule:
    return Rule(Scales.FREE, (data,), Weights(weights, axis, bias), costly=True)


def _fixed(scale: float, zero_point: int) -> Rule:
    return Rule(Scales.FIXED, fixed=Quantization(scale, zero_point))


INT8_RULES: dict[str, Rule] = {
    "CONV_2D": _linear(0, 1, 0, 2),
    "DEPTHWISE_CONV_2D": _linear(0, 1, 3, 2),
    "FULLY_CONNECTED": _linear(0, 1, 0, 2),
    "CONV_3D": _linear(0, 1, 4, 2),
    "TRANSPOSE_CONV": _linear(2, 1, 0, 3),
    "CONV_3D_TRANSPOSE": _linear(2, 1, 3, 3),
    "BATCH_MATMUL": Rule(Scales.FREE, (0, 1), costly=True),
    # The specification's own output parameters: the whole range of the function, whatever the data.
    "LOGISTIC": _fixed(1 / 256, -128),
    "SOFTMAX": _fixed(1 / 256, -128),
    "TANH": _fixed(1 / 128, 0),
    "LOG_SOFTMAX": _fixed(16 / 256, 127),
    "L2_NORMALIZATION": _fixed(1 / 128, 0),
    "ARG_MAX": Rule(Scales.INDICES),
    "ARG_MIN": Rule(Scales.INDICES),
}
for _name in "ADD SUB MUL PRELU".split():
    INT8_RULES[_name] = Rule(Scales.FREE, (0, 1))
for _name in """MEAN SUM ABS NEG RELU RELU6 RELU_N1_TO_1 CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH SOFTPLUS
                SOFTSIGN""".split():
    INT8_RULES[_name] = Rule(Scales.FREE)
for _name in """AVERAGE_POOL_2D AVERAGE_POOL_3D MAX_POOL_2D MAX_POOL_3D REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR
                RESIZE_NEAREST_NEIGHBOR RESHAPE TRANSPOSE SPLIT_V UNPACK SLICE STRIDED_SLICE PAD MIRROR_PAD TILE GATHER
                GATHER_ND EXPAND_DIMS SQUEEZE BROADCAST_TO REVERSE_V2 SPACE_TO_DEPTH DEPTH_TO_SPACE SPACE_TO_BATCH_ND
                BATCH_TO_SPACE_ND""".split():
    INT8_RULES[_name] = Rule(Scales.SHARED)
INT8_RULES["SPLIT"] = Rule(Scales.SHARED, (1,))
INT8_RULES["PADV2"] = Rule(Scales.SHARED, (0, 2))
INT8_RULES["SELECT_V2"] = Rule(Scales.SHARED, (1, 2))
for _name in "CONCATENATION PACK".split():
    INT8_RULES[_name] = Rule(Scales.SHARED, None)
for _name in "MAXIMUM MINIMUM".split():
    INT8_RULES[_name] = Rule(Scales.SHARED, (0, 1))

NO_INT16 = frozenset(
    {"L2_NORMALIZATION", "ARG_MAX", "ARG_MIN"}
    | {op for op in INT8_RULES if INT16 not in getattr(ops.get(op), "dtypes", {INT16})}
)
"""Ops that the 16x8 specification has no form for."""
INT16_RULES = {op: replace(rule, dtype=INT16) for op, rule in INT8_RULES.items() if op not in NO_INT16}
for _name in "LOGISTIC SOFTMAX TANH".split():
    INT16_RULES[_name] = Rule(Scales.FIXED, fixed=Quantization(1 / 32768), dtype=INT16)
INT16_RULES["NEG"] = Rule(Scales.SHARED, dtype=INT16)
INT16_RULES["PRELU"] = Rule(Scales.FREE, slopes=1, dtype=INT16)

RULES: Mapping[np.dtype, Mapping[str, Rule]] = {INT8: INT8_RULES, INT16: INT16_RULES}
"""By the dtype of the activations."""

TYPELESS = frozenset({"SHAPE", "RANK"})
"""Ops that read no values: they take whatever dtype is there."""

SENSITIVE = frozenset(
    """DIV POW SQUARED_DIFFERENCE SQUARE SQRT RSQRT RECIPROCAL EXP EXPM1 LOG LOG1P SIN COS ERF
    SIGN FLOOR CEIL ROUND FLOOR_DIV FLOOR_MOD CUMSUM REDUCE_PROD""".split()
)
"""Ops whose result integers determine badly: it spans many powers of two, jumps, or piles up errors."""


def why_float(op: str, dtype: np.dtype) -> str:
    """Why an op without a rule for activations of this dtype stays float."""
    if op in SENSITIVE:
        return f"{op} is too sensitive for {8 * dtype.itemsize}-bit inputs"
    return f"{op} has no {dtype} form"
