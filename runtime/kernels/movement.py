"""Strided copies and fills of 1, 2, 4 and 8 byte elements: transposes, slices, concatenations, pads, broadcasts."""

from __future__ import annotations

from runtime.kernels.abi import i8, i16, i32, i64, kernel, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.movement_parameters import COPY, FILL


def _copy(pointer, size):
    def run(params, begin, end, scratch):
        p = view(COPY, params)
        count, source_step, target_step = p.count, p.source_step, p.target_step
        for row in range(begin, end):
            source = p.source + offset_of(row, p.outer_rank, p.outer, p.source_strides)
            target = p.target + offset_of(row, p.outer_rank, p.outer, p.target_strides)
            if source_step == size and target_step == size:
                a, b = pointer(source), pointer(target)
                for i in range(count):
                    b[i] = a[i]
            else:
                for _ in range(count):
                    pointer(target)[0] = pointer(source)[0]
                    source += source_step
                    target += target_step
        return 0

    return kernel(run)


VALUE = 8 * FILL.slots.index("value")  # where the parameter block holds the element's bits


def _fill(pointer):
    def run(params, begin, end, scratch):
        p = view(FILL, params)
        target = pointer(p.target)
        value = pointer(params + VALUE)[0]
        for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
            target[i] = value
        return 0

    return kernel(run)


copy_8 = _copy(i8, 1)
copy_16 = _copy(i16, 2)
copy_32 = _copy(i32, 4)
copy_64 = _copy(i64, 8)
fill_8 = _fill(i8)
fill_16 = _fill(i16)
fill_32 = _fill(i32)
fill_64 = _fill(i64)
