"""Shapes that are known in part: sizes are numbers, or scalars that the graph computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading
from schema.graph import Tensor

INT32 = np.dtype(np.int32)
Size = int | Tensor


def size(reading: Reading, x: Tensor, axis: int) -> Size:
    """The number where it is known, else an int32 scalar of the graph."""
    shape = reading.shape(x)
    known = None if shape is None else shape[axis]
    if known is not None:
        return known
    shape_tensor = reading.emit("SHAPE", x, dtype=INT32)
    bounds = [reading.constant([n], np.int32) for n in (axis, axis + 1, 1)]
    return reading.emit("STRIDED_SLICE", shape_tensor, *bounds, shrink_axis_mask=1)


def reshape(reading: Reading, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """x with these sizes, one of which may be -1. One that is unknown is left to RESHAPE, more are packed into a
    shape.
    """
    unknown = [i for i, n in enumerate(sizes) if isinstance(n, Tensor)]
    if len(unknown) == 1 and -1 not in sizes:
        sizes = [-1 if isinstance(n, Tensor) else n for n in sizes]
    if any(isinstance(n, Tensor) for n in sizes):
        scalars = [n if isinstance(n, Tensor) else reading.constant(n, np.int32) for n in sizes]
        target = reading.emit("PACK", *scalars, axis=0)
    else:
        target = reading.constant(list(sizes), np.int32)
    return reading.emit("RESHAPE", x, target)


def merge_axes(reading: Reading, x: Tensor, counts: Sequence[int]) -> Tensor:
    """x with the first counts[0] axes merged into one, the next counts[1] axes, and so on; a count of 0 inserts an
    axis of 1.
    """
    if all(count == 1 for count in counts):
        return x
    sizes: list[Size] = []
    free, axis = -1, 0
    shape = reading.shape(x) or ()
    groups = []
    for count in counts:
        groups.append(range(axis, axis + count))
        axis += count
    for position, group in enumerate(groups):
        known = [shape[i] for i in group]
        if None not in known:
            sizes.append(int(np.prod(known, dtype=np.int64)))  # type: ignore[arg-type]
        elif free < 0:  # the first group of unknown size is what is left over
            free = position
            sizes.append(-1)
        elif len(group) == 1:
            sizes.append(size(reading, x, group[0]))
        else:
            factors = [size(reading, x, i) for i in group]
            scalars = [f if isinstance(f, Tensor) else reading.constant(f, np.int32) for f in factors]
            total = scalars[0]
            for scalar in scalars[1:]:
                total = reading.emit("MUL", total, scalar)
            sizes.append(total)
    return reshape(reading, x, sizes)
