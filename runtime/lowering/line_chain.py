"""Convolutions in float32 that follow each other line by line: see runtime.fusion, runtime.kernels.line_chain_f32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime import fusion
from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import kernel_for
from runtime.lowering import depthwise, matmul_float
from runtime.lowering.base import Call, LoweringContext, Parameters
from runtime.lowering.panels import round_up
from runtime.lowering.products import OPERANDS, Windows, windows_of

LINE = 64  # bytes
ROWS = 128  # of the last stage in a tile
MOST_ROWS = 256  # computed at once by any
SHARES = 4  # of an image, for workers: each computes some lines of its neighbour's once more
STATE_BYTES = 24  # of a stage
WHERE = OPERANDS["CONV_2D"]


@dataclass(frozen=True)
class Stage:
    """A product and the depthwise convolution before it, if there is one."""

    context: LoweringContext
    windows: Windows

    @property
    def before(self) -> LoweringContext | None:
        return self.context.before

    @property
    def shape(self) -> tuple[int, ...]:
        return self.context.outputs[0].shape or ()  # type: ignore[return-value]


def lower(context: LoweringContext) -> Call:
    """`context` is of the last product."""
    kernel = kernel_for("line_chain", "float32")
    stages = _stages(context)
    batch, height, width, _ = stages[-1].shape
    lines = min(max(1, ROWS // width), height)
    blocks = -(-height // lines)
    depthwise_room = round_up(STATE_BYTES * len(stages), LINE)
    buffer = depthwise_room + max(depthwise.room(stage.windows.depth) for stage in stages)
    rows = [max(MOST_ROWS // stage.shape[2], 1) * stage.shape[2] for stage in stages]
    gathered = buffer + 2 * max(rows) * kernel.width * 4
    end = gathered + max(_gathered(stage, n) for stage, n in zip(stages, rows, strict=True))
    rings = _rings(stages, lines)
    last: Parameters | int = 0  # innermost first: a stage's block holds that of the one before
    for number, (stage, ring) in enumerate(zip(stages, rings, strict=True)):
        line_bytes = 4 * stage.shape[2] * stage.shape[3]
        params = {"number": number, "before": last, "ring": ring, "ring_offset": end, "line_bytes": line_bytes}
        last = Parameters(parameters.LINE_STAGE_F32, {**params, **_stage(stage, ring == 0)})
        end += ring * line_bytes
    params = {
        "last": last,
        "stages": len(stages),
        "lines": lines,
        "line_blocks": blocks,
        "depthwise_room": depthwise_room,
        "buffer": buffer,
        "gathered": gathered,
    }
    tiles = batch * blocks
    grain = -(-blocks // min(SHARES, blocks))
    return Call(kernel.family, kernel.symbol, parameters.LINE_CHAIN_F32, params, tiles, grain, end + LINE)


def _stages(context: LoweringContext | None) -> list[Stage]:
    """From the first to the last."""
    stages: list[Stage] = []
    while context is not None:
        weights = context.inputs[WHERE.weights]
        assert weights is not None and weights.shape is not None  # runtime.fusion has looked
        x = context.inputs[WHERE.x] if context.before is None else context.before.outputs[0]
        assert x is not None
        stages.append(Stage(context, windows_of(context, WHERE, x.shape or (), weights.shape)))
        context = None if context.before is None else context.before.before
    return stages[::-1]


def _rings(stages: list[Stage], lines: int) -> list[int]:
    """How many lines of each stage's output are kept when tiles are `lines` lines; 0 for the last."""
    rings, needed, step = [0], lines, lines
    for stage in stages[:0:-1]:
        assert stage.before is not None
        stride = stage.before.attributes.stride_h
        needed = (needed - 1) * stride + _reach(stage)
        step *= stride
        rings.append(round_up(needed, step))
    return rings[::-1]


def _reach(stage: Stage) -> int:
    if stage.before is not None:
        return 2 * stage.before.attributes.dilation_h + 1
    return matmul_float.windows_in_lines(stage.windows)[1]


def _gathered(stage: Stage, rows: int) -> int:
    """Bytes for the rows of a product that are not in memory."""
    if stage.before is not None:
        return rows * matmul_float.gathered_stride(stage.windows.depth)
    if stage.windows.in_memory:
        return 0
    line_bytes, reach, _ = matmul_float.windows_in_lines(stage.windows)
    lines = rows // stage.shape[2]
    return round_up(((lines - 1) * stage.windows.slots["stride_h"] + reach) * line_bytes, LINE)


def _stage(stage: Stage, is_last: bool) -> dict[str, Any]:
    context, windows, slots = stage.context, stage.windows, stage.windows.slots
    runs, source, line_bytes, row_stride = [(0, windows.depth)], parameters.ROWS_IN_MEMORY, 0, slots["in_c"] * 4
    in_h, stride_h, pad_h = slots["in_h"], slots["stride_h"], slots["pad_h"]
    convolution: Parameters | int = 0
    if stage.before is not None:
        (call,) = depthwise.lower(stage.before) or []
        source, convolution = parameters.ROWS_OF_DEPTHWISE, Parameters(call.block, {**call.params, "output": 0})
        in_h, stride_h, pad_h = (call.params[slot] for slot in ("in_h", "stride_h", "pad_h"))
    elif not windows.in_memory:
        line_bytes, _, runs = matmul_float.windows_in_lines(windows)
        source, row_stride = parameters.ROWS_OF_LINES, slots["stride_w"] * slots["in_c"] * 4
    product = matmul_float.product(context, WHERE, windows) | {
        "input": context.input(WHERE.x) if stage.before is None else 0,
        "output": context.output() if is_last else 0,
        "rows": 0,
        "block": 0,
        "tile_panels": 0,
        "panel_tiles": 0,
        "source": source,
        "row_stride": row_stride,
        "lines": 0,
        "lines_in": 0,
        "line_blocks": 0,
        "line_bytes": line_bytes,
        "residual": context.input(fusion.RESIDUAL) if fusion.has_residual(context.node) else 0,
        "gathered_stride": matmul_float.gathered_stride(windows.depth),
        **matmul_float.pieces(runs),
    }
    return {
        "product": Parameters(parameters.MATMUL_F32, product),
        "depthwise": convolution,
        "in_h": in_h,
        "out_h": stage.shape[1],
        "out_w": stage.shape[2],
        "stride_h": stride_h,
        "pad_h": pad_h,
        "reach": _reach(stage),
        "most": max(1, MOST_ROWS // stage.shape[2]),
    }
