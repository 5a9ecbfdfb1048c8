"""Binary ops with broadcasting: float32 and int16 by arithmetic, int8 by a table of all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runtime.kernels.elementwise_parameters import BINARY, BINARY_LINEAR, BINARY_TABLE
from runtime.lowering import wide
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK, Broadcast, broadcast
from runtime.lowering.linear_pair import find_linear, find_sum
from schema import ops
from schema.graph import TensorType
from schema.ops.attributes import activation_range

FLOAT = "runtime.kernels.elementwise"
LOOKUP = "runtime.kernels.lookup"
LINEAR = "runtime.kernels.linear_pair"


def lower(context: LoweringContext) -> list[Call] | None:
    output = context.outputs[0]
    walk = broadcast([t.shape for t in context.inputs if t is not None], output.shape or ())
    if len(walk.steps) != 2:
        return None
    dtypes = {t.dtype for t in (*context.inputs, output) if t is not None}
    if dtypes == {np.dtype(np.float32)}:
        low, high = (-np.inf, np.inf) if context.attributes is None else activation_range(context.attributes)
        params = _operands(context, walk) | {"low": low, "high": high}
        return [Call(FLOAT, f"xnn_{context.node.op.lower()}_f32", BINARY, params, walk.rows * walk.chunks)]
    if dtypes == {np.dtype(np.int16)}:
        return wide.lower_arithmetic(context, _operands(context, walk), walk.rows * walk.chunks)
    if dtypes == {np.dtype(np.int8)}:
        params = _operands(context, walk) | {"table": context.derived("pairs", lambda: _pairs(context))}
        linear = find_linear(context, params["table"])
        if linear is not None:
            params |= linear | {"sum": _proven(context, linear)}
            return [Call(LINEAR, "xnn_linear_pair_i8", BINARY_LINEAR, params, walk.rows * walk.chunks)]
        return [Call(LOOKUP, "xnn_lookup_pair_i8", BINARY_TABLE, params, walk.rows * walk.chunks)]
    return None


def _operands(context: LoweringContext, walk: Broadcast) -> dict[str, Any]:
    return {
        "a": context.input(0),
        "b": context.input(1),
        "output": context.output(),
        "inner": walk.inner,
        "a_step": walk.steps[0],
        "b_step": walk.steps[1],
        "chunk": CHUNK,
        "chunks": walk.chunks,
        "outer_rank": len(walk.outer),
        "outer": np.array(walk.outer, np.int64),
        "a_strides": np.array(walk.strides[0], np.int64),
        "b_strides": np.array(walk.strides[1], np.int64),
    }


def _proven(context: LoweringContext, linear: Mapping[str, float]) -> np.ndarray | int:
    """What the kernel needs of the sum where it is proven to be linear."""
    (a, b), output = context.inputs, context.outputs[0]
    found = find_sum(context.node.op, a, b, output, int(linear["low"]), int(linear["high"]))
    return 0 if found is None else context.derived("sum", lambda: found.vectors())


def _pairs(context: LoweringContext) -> np.ndarray:
    """The reference's result for every pair of int8 numbers: int8 (256, 256)."""
    a, b = context.inputs
    every = np.arange(-128, 128).astype(np.int8)
    arrays = [every[:, np.newaxis], every[np.newaxis]]
    given = zip((a, b), arrays, strict=True)
    types = [TensorType(array.shape, array.dtype, t.quantization) for t, array in given if t is not None]
    output = TensorType((256, 256), np.dtype(np.int8), context.outputs[0].quantization)
    return ops.get(context.node.op).reference(context.attributes, arrays, types, [output])[0]
