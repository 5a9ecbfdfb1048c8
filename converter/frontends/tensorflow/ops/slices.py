"""Parts of tensors."""

from __future__ import annotations

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@reads("StridedSlice")
def strided_slice(reading: Reading) -> Result:
    return reading.emit("STRIDED_SLICE", *reading.tensors(), **{mask: reading.attribute(mask) or 0 for mask in MASKS})


@reads("Slice")
def slice_(reading: Reading) -> Result:
    return reading.emit("SLICE", *reading.tensors())
