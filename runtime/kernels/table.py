"""Which lowering serves which op. A lowering looks at dtypes and shapes and gives None where it has no kernel."""

from __future__ import annotations

import importlib

from runtime.lowering.base import Lowering

# op -> module of runtime.lowering whose `lower` makes its kernel calls
LOWERINGS: dict[str, str] = {
    **dict.fromkeys(["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"], "elementwise"),
    **dict.fromkeys(
        """TRANSPOSE SLICE STRIDED_SLICE CONCATENATION PACK SPLIT SPLIT_V PAD PADV2 TILE BROADCAST_TO SPACE_TO_DEPTH
        DEPTH_TO_SPACE RESIZE_NEAREST_NEIGHBOR""".split(),
        "movement",
    ),
    **dict.fromkeys(
        """RELU RELU6 RELU_N1_TO_1 CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS SOFTSIGN EXP LOG
        ERF SQRT RSQRT SQUARE RECIPROCAL ABS NEG""".split(),
        "activation",
    ),
    "PRELU": "elementwise",
    "RESIZE_BILINEAR": "resize",
    "QUANTIZE": "quantize",
    "DEQUANTIZE": "lookup",
}


def lowering_for(op: str) -> Lowering | None:
    """The lowering of an op, loaded when first asked for; None for ops that have no kernels."""
    module = LOWERINGS.get(op)
    return None if module is None else importlib.import_module(f"runtime.lowering.{module}").lower
