"""RESIZE_BILINEAR: positions become tables, made by the reference's own arithmetic."""

from __future__ import annotations

import numpy as np

from runtime.kernels.resize_parameters import RESIZE
from runtime.lowering.base import Call, LoweringContext
from schema.ops.resize_bilinear import neighbours, neighbours_integer

FAMILY = "runtime.kernels.resize"
KERNELS = {np.dtype(np.float32): "xnn_resize_bilinear_f32", np.dtype(np.int8): "xnn_resize_bilinear_i8"}


def lower(context: LoweringContext) -> list[Call] | None:
    given, output = context.inputs[0], context.outputs[0]
    symbol = KERNELS.get(output.dtype)
    if symbol is None or given is None or given.shape is None or output.shape is None:
        return None
    (_, in_height, in_width, channels), (batch, out_height, out_width, _) = given.shape, output.shape
    top, bottom, from_top = _positions(context, in_height, out_height)
    left, right, from_left = _positions(context, in_width, out_width)
    params = {
        "input": context.input(0),
        "output": context.output(),
        "in_height": in_height,
        "in_width": in_width,
        "out_height": out_height,
        "out_width": out_width,
        "channels": channels,
        "top": top,
        "bottom": bottom,
        "from_top": from_top,
        "left": left,
        "right": right,
        "from_left": from_left,
    }
    return [Call(FAMILY, symbol, RESIZE, params, batch * out_height)]


def _positions(context: LoweringContext, size: int, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if context.outputs[0].dtype == np.int8:
        return neighbours_integer(context.attributes, size, target)
    return neighbours(context.attributes, size, target, np.float32)
