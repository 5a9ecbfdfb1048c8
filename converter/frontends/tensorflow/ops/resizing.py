"""Resizing of images."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads

OPS = {"ResizeBilinear": "RESIZE_BILINEAR", "ResizeNearestNeighbor": "RESIZE_NEAREST_NEIGHBOR"}


@reads(*OPS)
def resize(reading: Reading) -> Result:
    """ResizeBilinear gives real numbers whatever it is given."""
    x, size = reading.tensors()
    if reading.node.op == "ResizeBilinear" and x.dtype.kind != "f":
        x = reading.emit("CAST", x, dtype=np.dtype(np.float32))
    flags = {name: bool(reading.attribute(name)) for name in ("align_corners", "half_pixel_centers")}
    return reading.emit(OPS[reading.node.op], x, size, **flags)
