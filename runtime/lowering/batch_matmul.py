"""BATCH_MATMUL: products of matrices that are both computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.kernels.matmul_parameters import BATCH_MATMUL_F32, BATCH_MATMUL_I8, FP32_ROUND_EVEN, TFLITE_DOUBLE
from runtime.kernels.table import kernel_for
from runtime.lowering.base import Call, LoweringContext
from runtime.lowering.matmul_float import pieces
from runtime.lowering.panels import panel_count, round_up
from runtime.lowering.requantization import Requantization, per_tensor

BLOCK_ROWS = 96


def lower(context: LoweringContext) -> list[Call] | None:
    a, b, output = context.inputs[0], context.inputs[1], context.outputs[0]
    if a is None or b is None or {a.dtype, b.dtype} != {output.dtype}:
        return None
    if output.dtype not in (np.float32, np.int8) or 0 in (output.shape or ()):
        return None
    item = output.dtype.itemsize
    kernel = kernel_for("batch_matmul", output.dtype.name)
    *batch, rows, columns = output.shape or ()
    a_shape, b_shape = a.shape or (), b.shape or ()
    depth = a_shape[-2 if context.attributes.adj_x else -1]
    a_steps, b_steps = (a_shape[-1] * item, item), (b_shape[-1] * item, item)
    panels, block = panel_count(columns, kernel.width), min(rows, BLOCK_ROWS)
    row_blocks = -(-rows // block)
    params = {
        "a": context.input(0),
        "b": context.input(1),
        "output": context.output(),
        "a_offsets": _offsets(a_shape, batch, item),
        "b_offsets": _offsets(b_shape, batch, item),
        "rows": rows,
        "columns": columns,
        "depth": depth,
        "block": block,
        "row_blocks": row_blocks,
        "panels": panels,
        "a_row": a_steps[context.attributes.adj_x],
        "a_column": a_steps[1 - context.attributes.adj_x],
        "b_row": b_steps[context.attributes.adj_y],
        "b_column": b_steps[1 - context.attributes.adj_y],
    }
    tiles = math.prod(batch) * panels * row_blocks
    sums = 2 * block if output.dtype == np.float32 else kernel.rows
    scratch = 4 * kernel.width * (sums + 1) + 4 * block
    scratch += item * round_up(depth, 4) * (kernel.width + block)
    if output.dtype == np.float32:
        params |= pieces([(0, depth)])
        return [Call(kernel.family, kernel.symbol, BATCH_MATMUL_F32, params, tiles, scratch=scratch)]
    scaling = _requantization(context)
    if scaling is None:
        return None
    multipliers, shifts = (np.repeat(values, kernel.width) for values in scaling.factors())
    params |= scaling.parameters() | {
        "a_zero": scaling.input_zero,
        "b_zero": int(b.quantization.zero_point[0]) if b.quantization is not None else 0,
        "multipliers": multipliers,
        "shifts": shifts,
    }
    return [Call(kernel.family, kernel.symbol, BATCH_MATMUL_I8, params, tiles, scratch=scratch)]


def _offsets(shape: Sequence[int | None], batch: Sequence[int | None], item: int) -> np.ndarray:
    """Bytes from a tensor's start to the matrix that each batch of the output takes."""
    lead, size = [d or 0 for d in shape[:-2]], math.prod(d or 0 for d in shape[-2:]) * item
    indices = np.arange(math.prod(lead), dtype=np.int64).reshape(lead) * size
    return np.ascontiguousarray(np.broadcast_to(indices, [d or 0 for d in batch])).reshape(-1)


def _requantization(context: LoweringContext) -> Requantization | None:
    a, b, output = context.inputs[0], context.inputs[1], context.outputs[0]
    scales = [per_tensor(kind) for kind in (a, b, output)]
    if None in scales:
        return None
    (a_scale, a_zero), (b_scale, _), (scale, zero_point) = (s for s in scales if s is not None)
    multiplier = np.float64(a_scale * b_scale) / np.float64(scale)  # the product of scales in float32, as TFLite has it
    rule = FP32_ROUND_EVEN if context.requantization == "FP32_ROUND_EVEN" else TFLITE_DOUBLE
    return Requantization(rule, a_zero, zero_point, np.array([multiplier]), -128, 127)
