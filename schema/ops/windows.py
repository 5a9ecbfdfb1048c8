"""Windows that slide over spatial axes: how many there are, how they are padded, which pixels they see.

`axes` names the spatial axes ("hw" or "dhw"); attributes are read as `stride_h`, `dilation_h` and so on.
Layouts are channels-last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema.ops.base import require


def along(attributes: Any, kind: str, axes: str) -> tuple[int, ...]:
    """The attribute for each axis: along(a, "stride", "hw") is (a.stride_h, a.stride_w); 1 where there is none."""
    return tuple(getattr(attributes, f"{kind}_{axis}", 1) for axis in axes)


def check_window(attributes: Any, axes: str) -> None:
    """Raise ShapeError for strides, dilations, filters or pads that make no sense."""
    for kind in ("stride", "dilation", "filter"):
        sizes = along(attributes, kind, axes)
        require(min(sizes) > 0, f"{kind} {'x'.join(map(str, sizes))} must be positive")
    require(attributes.padding in ("SAME", "VALID", "EXPLICIT"), f"padding {attributes.padding!r} is unknown")
    if attributes.padding == "EXPLICIT":
        pads = attributes.pads
        require(len(pads) == 2 * len(axes), f"explicit padding needs {2 * len(axes)} numbers, not {len(pads)}")
        require(min(pads) >= 0, f"pads {pads} must not be negative")
    else:
        require(not attributes.pads, f"pads {attributes.pads} need padding EXPLICIT, not {attributes.padding}")


def extent(kernel: int, dilation: int) -> int:
    """How far a dilated kernel reaches."""
    return (kernel - 1) * dilation + 1


def _output_dim(padding: str, size: int, pads: int, kernel: int, stride: int, dilation: int) -> int:
    if padding == "SAME":
        return -(-size // stride)
    return (size + pads - extent(kernel, dilation)) // stride + 1


def output_size(
    attributes: Any, axes: str, size: Sequence[int | None], kernel: Sequence[int | None]
) -> tuple[int | None, ...]:
    """Spatial output sizes as TensorFlow has them, None where unknown. Raises ShapeError for none or a negative one."""
    padding: str = attributes.padding
    result: list[int | None] = []
    for i, (axis, stride, dilation) in enumerate(
        zip(axes, along(attributes, "stride", axes), along(attributes, "dilation", axes), strict=True)
    ):
        n, k = size[i], kernel[i]
        require(k is None or k > 0, f"the kernel is empty along {axis}")
        if n is None or (k is None and padding != "SAME"):
            result.append(None)
            continue
        pads = sum(attributes.pads[2 * i : 2 * i + 2])
        out = _output_dim(padding, n, pads, k or 1, stride, dilation)
        require(n > 0 and out > 0, f"a window of {k} (dilation {dilation}) does not fit {n} + {pads} along {axis}")
        result.append(out)
    return tuple(result)


def static_output_size(attributes: Any, axes: str, size: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """output_size where every size is known."""
    return tuple(n for n in output_size(attributes, axes, size, kernel) if n is not None)


def pad_amounts(attributes: Any, axes: str, size: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each axis. SAME puts the odd one after, as TensorFlow does."""
    if attributes.padding == "VALID":
        return [(0, 0)] * len(axes)
    if attributes.padding == "EXPLICIT":
        return [(attributes.pads[2 * i], attributes.pads[2 * i + 1]) for i in range(len(axes))]
    amounts = []
    for n, k, stride, dilation in zip(
        size, kernel, along(attributes, "stride", axes), along(attributes, "dilation", axes), strict=True
    ):
        total = max((-(-n // stride) - 1) * stride + extent(k, dilation) - n, 0)
        amounts.append((total // 2, total - total // 2))
    return amounts


def coordinates(
    attributes: Any, axes: str, size: Sequence[int], kernel: Sequence[int], output: Sequence[int]
) -> list[np.ndarray]:
    """For each axis the input coordinate (output, kernel) that a tap meets. Outside of [0, size) lies padding."""
    pads = pad_amounts(attributes, axes, size, kernel)
    return [
        np.arange(out)[:, np.newaxis] * stride + np.arange(k) * dilation - before
        for out, k, stride, dilation, (before, _) in zip(
            output, kernel, along(attributes, "stride", axes), along(attributes, "dilation", axes), pads, strict=True
        )
    ]
