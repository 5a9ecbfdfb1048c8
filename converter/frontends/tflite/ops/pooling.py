"""Pooling over windows."""

from __future__ import annotations

from typing import Any

from converter.frontends.tflite.reading import Reading, reads


def _pool(options: dict[str, Any]) -> dict[str, Any]:
    names = {"stride_h": "stride_h", "stride_w": "stride_w", "filter_h": "filter_height", "filter_w": "filter_width"}
    return {ours: options[theirs] for ours, theirs in names.items()} | {"padding": options["padding"]}


@reads("AVERAGE_POOL_2D", options="Pool2DOptions")
def average_pool_2d(reading: Reading) -> None:
    reading.emit("AVERAGE_POOL_2D", reading.operands(1), **_pool(reading.options), **reading.activation())


@reads("MAX_POOL_2D", options="Pool2DOptions")
def max_pool_2d(reading: Reading) -> None:
    reading.emit("MAX_POOL_2D", reading.operands(1), **_pool(reading.options), **reading.activation())


@reads("L2_POOL_2D", options="Pool2DOptions")
def l2_pool_2d(reading: Reading) -> None:
    """The root of the mean square of each window's numbers that are not padding; TFLite has it for floats alone."""
    x, output = reading.operands(1)[0], reading.output()
    squares = reading.intermediate("SQUARE", [x], output.dtype)
    means = reading.intermediate("AVERAGE_POOL_2D", [squares], output.dtype, **_pool(reading.options))
    activation = reading.activation()["activation"]
    if activation == "NONE":
        reading.emit("SQRT", [means])
    else:
        reading.emit(activation, [reading.intermediate("SQRT", [means], output.dtype)])
