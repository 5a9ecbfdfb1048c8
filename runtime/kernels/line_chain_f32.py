"""Convolutions in float32 that follow each other line by line, so that what is between them stays in the cache: 1x1 (or
any other) -> 3x3 depthwise -> 1x1 -> ... Imports numba.

Each stage makes the lines that the next one needs of it and keeps as many of them as are still wanted, line y in place
y + shift of a ring. Tiles that follow each other in a call find there what the tile before has made.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i64, inline, kernel, truncated_divide, view
from runtime.kernels.depthwise_f32_3x3 import clear, depthwise_line
from runtime.kernels.depthwise_parameters import DEPTHWISE_F32
from runtime.kernels.matmul_f32 import copy_lines, segments_product
from runtime.kernels.matmul_parameters import LINE_CHAIN_F32, LINE_STAGE_F32, MATMUL_F32, ROWS_OF_LINES

# What is known of each stage, at the start of the scratch.
NEXT = 0  # the line that it makes next
UNTIL = 8  # up to which line the tile needs it
SHIFT = 16
STATE_BYTES = 24

multiply = segments_product(12, 2)


@inline
def remainder(value, divisor):
    return value - truncated_divide(value, divisor) * divisor


@inline
def needed_lines(p, first, until, restart, state):
    """Find which lines of each stage are needed for lines `first` to `until` of the last one."""
    at = p.last
    while at != 0:
        stage = view(LINE_STAGE_F32, at)
        known = state + STATE_BYTES * stage.number
        if restart:
            i64(known + NEXT)[0] = first
            if stage.ring != 0:  # what this tile needs ends at the end of the ring, so that later ones do not cross it
                i64(known + SHIFT)[0] = stage.ring - remainder(until, stage.ring)
        i64(known + UNTIL)[0] = until
        first = max(int64(0), first * stage.stride_h - stage.pad_h)
        until = min(stage.in_h, (until - 1) * stage.stride_h - stage.pad_h + stage.reach)
        at = stage.before


@inline
def make_lines(p, stage, batch, scratch):
    """What the tile needs of a stage."""
    product = view(MATMUL_F32, stage.product)
    known = scratch + STATE_BYTES * stage.number
    line, until = i64(known + NEXT)[0], i64(known + UNTIL)[0]
    gathered, room = scratch + p.gathered, scratch + p.depthwise_room
    while line < until:
        lines = min(until - line, stage.most)
        output, residual = int64(0), int64(0)
        if stage.ring != 0:
            place = remainder(line + i64(known + SHIFT)[0], stage.ring)
            lines = min(lines, stage.ring - place)
            output = scratch + stage.ring_offset + place * stage.line_bytes
        else:
            first = (batch * stage.out_h + line) * stage.out_w
            output = product.output + first * product.output_stride
            if product.residual != 0:
                residual = product.residual + first * product.residual_stride
        rows, stride, count = gathered, product.gathered_stride, lines * stage.out_w
        segments, segment_bytes = int64(1), int64(0)
        if stage.depthwise != 0:
            depthwise = view(DEPTHWISE_F32, stage.depthwise)
            clear(depthwise, room)
            source = depthwise.input + batch * stage.in_h * depthwise.in_w * depthwise.channels * 4
            kept, shift = stage.in_h, int64(0)
            if stage.before != 0:
                before = view(LINE_STAGE_F32, stage.before)
                source, kept = scratch + before.ring_offset, before.ring
                shift = i64(known - STATE_BYTES + SHIFT)[0]
            for y in range(lines):
                depthwise_line(depthwise, source, kept, shift, line + y, rows + y * stage.out_w * stride, stride, room)
        elif product.source == ROWS_OF_LINES:
            image = product.input + 4 * batch * product.in_h * product.in_w * product.in_c
            first_in, needed = line * stage.stride_h - stage.pad_h, (lines - 1) * stage.stride_h + stage.reach
            copy_lines(product, rows, image, first_in, needed)
            stride, count, segments, segment_bytes = (
                product.row_stride,
                stage.out_w,
                lines,
                stage.stride_h * product.line_bytes,
            )
        else:
            rows = product.input + (batch * stage.out_h + line) * stage.out_w * product.row_stride
            stride = product.row_stride
        multiply(
            product,
            rows,
            stride,
            count,
            segments,
            segment_bytes,
            int64(0),
            int64(0),
            product.panels,
            output,
            residual,
            scratch + p.buffer,
        )
        line += lines
    i64(known + NEXT)[0] = until


@kernel
def line_chain_f32(params, begin, end, scratch):
    p = view(LINE_CHAIN_F32, params)
    height = view(LINE_STAGE_F32, p.last).out_h
    for tile in range(begin, end):
        batch = truncated_divide(tile, p.line_blocks)
        first = (tile - batch * p.line_blocks) * p.lines
        needed_lines(p, first, min(first + p.lines, height), tile == begin or first == 0, scratch)
        for number in range(p.stages):
            at = p.last
            for _ in range(p.stages - 1 - number):
                at = view(LINE_STAGE_F32, at).before
            make_lines(p, view(LINE_STAGE_F32, at), batch, scratch)
    return 0
