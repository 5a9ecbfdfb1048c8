"""What convolutions share: windows, padding, sums of products, and the way from an accumulator to the output.

`axes` names the spatial axes ("hw" or "dhw"); attributes are read as `stride_h`, `dilation_h` and so on.
Layouts are channels-last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import activation_range
from schema.ops.base import require
from schema.ops.dtypes import (
    ACCUMULATORS,
    FLOATS,
    QUANTIZED,
    is_quantized,
    per_tensor,
    quantized,
    require_dtype,
    require_same_dtype,
)

BLOCK = 1 << 22
"""How many elements of unrolled windows are held at once."""


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


def infer_dtype(op: str, x: TensorType, weights: TensorType, bias: TensorType | None) -> np.dtype:
    """The output dtype: all are of one float dtype, or int8 with an int32 bias."""
    require_dtype(op, "input", x, FLOATS | QUANTIZED)
    require_same_dtype(op, x, weights)
    if bias is not None:
        require_dtype(op, "bias", bias, {x.dtype} if x.dtype in FLOATS else ACCUMULATORS)
    return x.dtype


def infer_bias(bias: TensorType | None, out: int | None) -> None:
    """Raise ShapeError unless the bias, where there is one, has `out` elements."""
    if bias is None or bias.shape is None:
        return
    require(bias.rank == 1, f"the bias is {bias}, not a vector")
    require(None in (out, bias.shape[0]) or bias.shape[0] == out, f"bias {bias} does not fit {out} output channels")


def infer_groups(channels: int | None, per_group: int | None, out: int | None) -> None:
    """Raise ShapeError unless the channels are groups of `per_group`, and the outputs as many equal groups."""
    require(per_group is None or per_group > 0, "the weights have no input channels")
    if channels is None or per_group is None:
        return
    require(channels > 0 and channels % per_group == 0, f"{channels} channels are not groups of {per_group}")
    require(out is None or out % (channels // per_group) == 0,
            f"{out} output channels do not split into {channels // per_group} groups")  # fmt: skip


def centred(op: str, what: str, x: np.ndarray, tensor: TensorType) -> np.ndarray:
    """What is multiplied: x - zero_point for integers (int64), x itself for floats (at least float32)."""
    if is_quantized(tensor):
        _, zero_point = quantized(op, what, tensor).broadcast(x.ndim)
        return x.astype(np.int64) - zero_point
    return x.astype(np.float32) if x.dtype == np.float16 else x


def exact_dtype(x: np.ndarray, weights: np.ndarray, reduced: int | tuple[int, ...]) -> np.dtype:
    """A float dtype in which sums of products of these integers are exact: float matrix products are the fast ones."""
    if x.dtype.kind == "f":
        return x.dtype
    largest = int(np.abs(x).max(initial=0)) * int(np.abs(weights).sum(axis=reduced).max(initial=0))
    return np.dtype(np.float32 if largest < 1 << 24 else np.float64)


def unrolled(attributes: Any, axes: str, x: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
    """A view of padded x: (batch, *output, channels, *kernel). Padding is zeros, so integers must be centred."""
    pads = pad_amounts(attributes, axes, x.shape[1:-1], kernel)
    strides, dilations = along(attributes, "stride", axes), along(attributes, "dilation", axes)
    reach = tuple(extent(k, d) for k, d in zip(kernel, dilations, strict=True))
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    view = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(1, x.ndim - 1)))
    every = slice(None)
    steps = (every, *(slice(None, None, s) for s in strides), every, *(slice(None, None, d) for d in dilations))
    return view[steps]


def _blocks(samples: int, rows: int, row_elements: int) -> Iterator[tuple[slice, slice]]:
    """Slices of (samples, rows) that hold at most about BLOCK elements each."""
    together = BLOCK // max(rows * row_elements, 1)
    if together:
        yield from ((slice(n, n + together), slice(None)) for n in range(0, samples, together))
        return
    step = max(BLOCK // row_elements, 1)
    yield from ((slice(n, n + 1), slice(r, r + step)) for n in range(samples) for r in range(0, rows, step))


def accumulate(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """Sums of products, without bias. x and weights are `centred`; weights (*kernel, in / groups, out).

    Returns (batch, *output, out) of x's dtype. im2col and one matrix product a group.
    """
    kernel, (per_group, out) = weights.shape[:-2], weights.shape[-2:]
    if per_group == 1:
        return accumulate_depthwise(attributes, axes, x, weights.reshape(*kernel, groups, out // groups))
    dtype = exact_dtype(x, weights, tuple(range(weights.ndim - 1)))
    windows = np.moveaxis(unrolled(attributes, axes, x.astype(dtype), kernel), len(axes) + 1, -1)
    size = windows.shape[1 : len(axes) + 1]
    result = np.empty((x.shape[0], *size, out), dtype)
    columns = math.prod(kernel) * per_group
    matrices = weights.astype(dtype).reshape(columns, groups, out // groups)
    for samples, rows in _blocks(x.shape[0], size[0], math.prod(size[1:]) * columns):
        part, block = windows[samples, rows], result[samples, rows]
        for g in range(groups):
            unfolded = part[..., g * per_group : (g + 1) * per_group].reshape(-1, columns)
            outputs = slice(g * (out // groups), (g + 1) * (out // groups))
            block[..., outputs] = (unfolded @ matrices[:, g]).reshape(*block.shape[:-1], -1)
    return result.astype(x.dtype)


def accumulate_depthwise(attributes: Any, axes: str, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As `accumulate`, each channel alone.

    weights (*kernel, channels, multiplier) -> (batch, *output, channels * multiplier).
    """
    kernel, (channels, multiplier) = weights.shape[:-2], weights.shape[-2:]
    dtype = exact_dtype(x, weights, tuple(range(len(kernel))))
    windows = unrolled(attributes, axes, x.astype(dtype), kernel)
    size = windows.shape[1 : len(axes) + 1]
    result = np.zeros((x.shape[0], *size, channels, multiplier), dtype)
    for tap in np.ndindex(*kernel):
        at = (..., *tap, np.newaxis)
        result += windows[at] * weights[tap].astype(dtype)
    return result.reshape(x.shape[0], *size, channels * multiplier).astype(x.dtype)


def finish(
    op: str,
    attributes: Any,
    acc: np.ndarray,
    bias: np.ndarray | None,
    x: TensorType,
    weights: TensorType,
    output: TensorType,
    exact: bool = False,
) -> np.ndarray:
    """Bias, requantization (see fixedpoint.requantize) and fused activation: accumulators (..., out) to the output."""
    if bias is not None:
        acc = acc + bias.astype(acc.dtype)
    low, high = activation_range(attributes)
    if not is_quantized(x):
        return np.clip(acc, low, high).astype(output.dtype)
    input_scale, _ = per_tensor(op, "input", x)
    output_scale, zero_point = per_tensor(op, "output", output)
    weight_scales = quantized(op, "weights", weights).scale.astype(np.float64)
    multipliers = np.float64(input_scale) * weight_scales / np.float64(output_scale)
    bounds = fixedpoint.activation_bounds(low, high, output)
    return fixedpoint.requantize(acc, multipliers, zero_point, *bounds, exact=exact).astype(output.dtype)
