"""Which lowering serves which op, and which kernel a lowering gets for this machine.

A lowering looks at dtypes and shapes and gives None where it has no kernel.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass

from runtime.lowering.base import Lowering
from runtime.native.target import host_target, isa_tiers

# op -> module of runtime.lowering whose `lower` makes its kernel calls
LOWERINGS: dict[str, str] = {
    **dict.fromkeys(["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"], "elementwise"),
    **dict.fromkeys(
        """TRANSPOSE SLICE STRIDED_SLICE CONCATENATION PACK SPLIT SPLIT_V PAD PADV2 TILE BROADCAST_TO SPACE_TO_DEPTH
        DEPTH_TO_SPACE RESIZE_NEAREST_NEIGHBOR""".split(),
        "movement",
    ),
    **dict.fromkeys(
        """RELU RELU6 RELU_N1_TO_1 CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS SOFTSIGN EXP
        LOG ERF SQRT RSQRT SQUARE RECIPROCAL ABS NEG""".split(),
        "activation",
    ),
    **dict.fromkeys(["CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "CONV_3D_TRANSPOSE", "FULLY_CONNECTED"], "matmul"),
    "BATCH_MATMUL": "batch_matmul",
    "DEPTHWISE_CONV_2D": "depthwise",
    **dict.fromkeys(["MAX_POOL_2D", "MAX_POOL_3D", "AVERAGE_POOL_2D", "AVERAGE_POOL_3D"], "pooling"),
    **dict.fromkeys(["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"], "reduction"),
    "SOFTMAX": "softmax",
    "PRELU": "elementwise",
    "RESIZE_BILINEAR": "resize",
    "QUANTIZE": "quantize",
    "DEQUANTIZE": "lookup",
}

# how the planner or a reference serves the ops that have no lowering -> those ops
BY_REFERENCE: dict[str, str] = {
    "a view of its input": "RESHAPE SQUEEZE EXPAND_DIMS",
    "known once shapes are: folded by the planner": "SHAPE RANK",
    "numpy fills, copies or picks whole arrays": """FILL RANGE ONE_HOT GATHER GATHER_ND SCATTER_ND REVERSE_V2 UNPACK
        MIRROR_PAD SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND SELECT_V2 CAST""",
    "numpy computes whole arrays": """EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR
        LOGICAL_NOT SIGN SIN COS EXPM1 LOG1P FLOOR CEIL ROUND POW FLOOR_DIV FLOOR_MOD CUMSUM REDUCE_PROD REDUCE_ANY
        REDUCE_ALL LOG_SOFTMAX L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION""",
    "a graph of its own": "IF WHILE",
    "numpy sorts, or finds the largest": "ARG_MAX ARG_MIN TOPK_V2",
    "the data decide how much there is to do": "WHERE NON_MAX_SUPPRESSION_V5 DETECTION_POSTPROCESS",
    "numpy computes each step in time": "UNIDIRECTIONAL_SEQUENCE_RNN UNIDIRECTIONAL_SEQUENCE_LSTM SVDF",
}


def lowering_for(op: str) -> Lowering | None:
    """The lowering of an op, loaded when first asked for; None for ops that have no kernels."""
    module = LOWERINGS.get(op)
    return None if module is None else importlib.import_module(f"runtime.lowering.{module}").lower


@dataclass(frozen=True)
class Kernel:
    """A kernel that exists for some ISAs only. It computes `rows` x `width` outputs at a time from panels that wide."""

    family: str
    symbol: str
    rows: int
    width: int


def _product(name: str, rows: int, width: int) -> Kernel:
    return Kernel(f"runtime.kernels.{name}_{rows}x{width}", f"xnn_{name}_{rows}x{width}", rows, width)


# (what it computes, dtype, ISA) -> kernel
KERNELS: dict[tuple[str, str, str], Kernel] = {
    ("matmul", "float32", "avx512"): _product("matmul_f32", 12, 32),
    ("matmul", "float32", "generic"): _product("matmul_f32", 6, 16),
    ("matmul_tiles", "int8", "amx"): Kernel("runtime.kernels.matmul_i8_tiles", "xnn_matmul_i8_tiles", 32, 32),
    ("depthwise_3x3", "float32", "avx512"): Kernel("runtime.kernels.depthwise_f32_3x3", "xnn_depthwise_f32_3x3", 1, 16),
    ("line_chain", "float32", "avx512"): Kernel("runtime.kernels.line_chain_f32", "xnn_line_chain_f32", 12, 32),
    ("depthwise_quads", "int8", "avx512"): Kernel(
        "runtime.kernels.depthwise_i8_quads", "xnn_depthwise_i8_quads", 1, 64
    ),
    ("matmul", "int8", "avx512"): _product("matmul_i8", 12, 32),
    ("matmul", "int8", "generic"): _product("matmul_i8", 6, 16),
    ("batch_matmul", "float32", "avx512"): _product("batch_matmul_f32", 12, 32),
    ("batch_matmul", "float32", "generic"): _product("batch_matmul_f32", 6, 16),
    ("batch_matmul", "int8", "avx512"): _product("batch_matmul_i8", 6, 32),
    ("batch_matmul", "int8", "generic"): _product("batch_matmul_i8", 6, 16),
}


@functools.cache
def find_kernel(kind: str, dtype: str) -> Kernel | None:
    """The best kernel that this machine can run, None where it has none."""
    for isa in isa_tiers(host_target()):
        kernel = KERNELS.get((kind, dtype, isa))
        if kernel is not None:
            return kernel
    return None


def kernel_for(kind: str, dtype: str) -> Kernel:
    """As `find_kernel`, of a kind that every machine can run."""
    kernel = find_kernel(kind, dtype)
    if kernel is None:
        raise KeyError(f"no kernel for {kind} of {dtype}")
    return kernel
