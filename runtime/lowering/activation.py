"""Functions of one number: float32 by arithmetic, int8 by a table."""

from __future__ import annotations

import math

import numpy as np

from runtime.kernels.elementwise_parameters import UNARY
from runtime.lowering import lookup
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK

FAMILY = "runtime.kernels.activation"

CLAMPS = {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    if given is None or given.dtype != np.float32 or output.dtype != np.float32:
        return lookup.lower(context)
    kernel, alpha, beta = _kernel(context)
    count = math.prod(output.shape)
    params = {
        "input": context.input(0),
        "output": context.output(),
        "count": count,
        "chunk": CHUNK,
        "alpha": alpha,
        "beta": beta,
    }
    return [Call(FAMILY, f"xnn_{kernel}_f32", UNARY, params, -(-count // CHUNK))]


def _kernel(context: LoweringContext) -> tuple[str, float, float]:
    """(kernel, alpha, beta)."""
    op, attributes = context.node.op, context.attributes
    if op in CLAMPS:
        return "clamp", *CLAMPS[op]
    if op == "CLAMP":
        return "clamp", attributes.min, attributes.max
    if op in ("LEAKY_RELU", "ELU"):
        return op.lower(), attributes.alpha, 0.0
    if op == "GELU" and attributes.approximate:
        return "gelu_approximate", 0.0, 0.0
    return op.lower(), 0.0, 0.0
