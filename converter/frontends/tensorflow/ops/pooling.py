"""Pooling in two and three dimensions."""

from __future__ import annotations

from typing import Any

from converter.frontends.tensorflow.ops.convolutions import AXES_2D, AXES_3D
from converter.frontends.tensorflow.ops.reading import Reading, Result, reads

OPS = {
    "MaxPool": "MAX_POOL_2D",
    "AvgPool": "AVERAGE_POOL_2D",
    "MaxPool3D": "MAX_POOL_3D",
    "AvgPool3D": "AVERAGE_POOL_3D",
}


@reads(*OPS)
def pool(reading: Reading) -> Result:
    return _pool(reading, OPS[reading.node.op], reading.spatial("ksize"), reading.spatial("strides"))


@reads("MaxPoolV2")
def max_pool_v2(reading: Reading) -> Result:
    """The window and its strides are inputs."""
    window = reading.spatial_of(list(reading.value(1, "the window")))
    return _pool(reading, "MAX_POOL_2D", window, reading.spatial_of(list(reading.value(2, "the strides"))))


def _pool(reading: Reading, op: str, window: list[int], strides: list[int]) -> Result:
    axes = AXES_2D if op.endswith("2D") else AXES_3D
    attributes: dict[str, Any] = reading.padding()
    attributes |= {f"filter_{axis}": size for axis, size in zip(axes, window, strict=True)}
    attributes |= {f"stride_{axis}": size for axis, size in zip(axes, strides, strict=True)}
    return reading.restored(reading.emit(op, reading.channels_last(reading.tensor(0)), **attributes))
