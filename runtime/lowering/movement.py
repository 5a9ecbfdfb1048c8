"""Ops that only move elements, as strided copies from views of their inputs to views of their outputs.

The views are numpy's own, on arrays that have a shape and strides but no memory behind them: numpy's slicing and
transposing do the arithmetic, and nothing is ever read through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runtime.kernels.movement_parameters import COPY, FILL
from runtime.lowering.base import Address, Call, LoweringContext
from runtime.lowering.broadcasting import CHUNK
from schema.graph import TensorType
from schema.ops.strided_slice import numpy_index

FAMILY = "runtime.kernels.movement"


def phantom(kind: TensorType) -> np.ndarray:
    """An array of that type's shape and C strides, with no memory behind it: for views, never for values."""
    shape = kind.shape or ()
    strides, step = [], kind.dtype.itemsize
    for dim in reversed(shape):
        strides.append(step)
        step *= dim or 0
    return np.lib.stride_tricks.as_strided(np.empty(1, kind.dtype), shape, strides[::-1])


@dataclass(frozen=True)
class Part:
    """`view`, a numpy view of `whole`, the phantom of the tensor at `address`."""

    address: Address | np.ndarray
    whole: np.ndarray
    view: np.ndarray

    @property
    def offset(self) -> int:
        """Bytes from the tensor's start to the view's first element. Raises ValueError for a view that leaves the
        tensor.
        """
        start = self.view.__array_interface__["data"][0] - self.whole.__array_interface__["data"][0]
        reach = [(n - 1) * s for n, s in zip(self.view.shape, self.view.strides, strict=True)]
        first, last = start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0)
        if first < 0 or last + self.view.itemsize > self.whole.nbytes:
            raise ValueError(f"bytes {first} to {last + self.view.itemsize} of a tensor of {self.whole.nbytes}")
        return start


def copy(source: Part, target: Part) -> Call:
    """target.view[...] = source.view, as one kernel call."""
    dims = _merge(target.view.shape, source.view.strides, target.view.strides)
    count, source_step, target_step = dims[-1]
    outer = dims[:-1]
    rows = int(np.prod([size for size, _, _ in outer], dtype=np.int64))
    params = {
        "source": _moved(source.address, source.offset),
        "target": _moved(target.address, target.offset),
        "count": count,
        "source_step": source_step,
        "target_step": target_step,
        "outer_rank": len(outer),
        "outer": np.array([size for size, _, _ in outer], np.int64),
        "source_strides": np.array([s for _, s, _ in outer], np.int64),
        "target_strides": np.array([t for _, _, t in outer], np.int64),
    }
    return Call(
        FAMILY, f"xnn_copy_{8 * source.view.itemsize}", COPY, params, rows, grain=max(1, CHUNK // max(count, 1))
    )


def fill(target: Address, count: int, value: np.generic) -> Call:
    """`count` elements of `value`."""
    bits = value.view(f"i{value.itemsize}")
    params = {"target": target, "count": count, "chunk": CHUNK, "value": int(bits)}
    return Call(FAMILY, f"xnn_fill_{8 * value.itemsize}", FILL, params, -(-count // CHUNK))


def _moved(source: Address | np.ndarray, by: int) -> Address | np.ndarray:
    if isinstance(source, Address):
        return Address(source.tensor, source.offset + by)
    return source.reshape(-1).view(np.uint8)[by:]


def _merge(shape, source_strides, target_strides) -> list[tuple[int, int, int]]:
    """(size, source stride, target stride) of each dimension, neighbours merged where both walk on evenly."""
    dims: list[tuple[int, int, int]] = []
    for size, source, target in zip(shape, source_strides, target_strides, strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == source * size and dims[-1][2] == target * size:
            dims[-1] = (dims[-1][0] * size, source, target)
        else:
            dims.append((size, source, target))
    return dims or [(1, 0, 0)]


def _whole(
    context: LoweringContext, source: np.ndarray, view: np.ndarray, shape: Sequence[int] | None = None
) -> list[Call]:
    """The output, reshaped to `shape`, is `view`, a view of input 0's phantom `source`."""
    target = phantom(context.outputs[0])
    target_view = target if shape is None else target.reshape(shape)
    return [copy(Part(context.input(0), source, view), Part(context.output(), target, target_view))]


def _movable(kind: TensorType | None) -> bool:
    return kind is not None and kind.dtype.itemsize in (1, 2, 4, 8)


def transpose(context: LoweringContext) -> list[Call] | None:
    perm = context.constant(1)
    if perm is None:
        return None
    source = phantom(context.inputs[0])
    return _whole(context, source, source.transpose(perm.tolist()))


def slice_(context: LoweringContext) -> list[Call] | None:
    begin = context.constant(1)
    if begin is None:
        return None
    source = phantom(context.inputs[0])
    window = tuple(slice(int(b), int(b) + n) for b, n in zip(begin, context.outputs[0].shape, strict=True))
    return _whole(context, source, source[window])


def strided_slice(context: LoweringContext) -> list[Call] | None:
    begin, end, strides = (context.constant(i) for i in (1, 2, 3))
    if begin is None or end is None or strides is None or not context.outputs[0].shape:
        return None
    source = phantom(context.inputs[0])
    return _whole(context, source, source[numpy_index(context.attributes, source.shape, begin, end, strides)])


def concatenation(context: LoweringContext) -> list[Call] | None:
    if not all(_movable(t) for t in context.inputs):
        return None
    output = context.outputs[0]
    if output.dtype == np.uint8 and any(t.quantization != output.quantization for t in context.inputs):
        return None  # legacy: brought to the output's scale, not moved
    target = phantom(output)
    axis = context.attributes.axis % target.ndim
    calls, start = [], 0
    for index, kind in enumerate(context.inputs):
        source = phantom(kind)
        window = (slice(None),) * axis + (slice(start, start + source.shape[axis]),)
        start += source.shape[axis]
        if source.size:
            calls.append(
                copy(Part(context.input(index), source, source), Part(context.output(), target, target[window]))
            )
    return calls


def pack(context: LoweringContext) -> list[Call] | None:
    target = phantom(context.outputs[0])
    axis = context.attributes.axis % target.ndim
    calls = []
    for index, kind in enumerate(context.inputs):
        view = target[(slice(None),) * axis + (index,)] if target.ndim > 1 else target[index : index + 1]
        source = phantom(kind) if target.ndim > 1 else phantom(kind).reshape(1)
        calls.append(copy(Part(context.input(index), source, source), Part(context.output(), target, view)))
    return calls


def _split_along(context: LoweringContext, operand: int, axis: int) -> list[Call]:
    source = phantom(context.inputs[operand])
    calls, start = [], 0
    for index, kind in enumerate(context.outputs):
        size = kind.shape[axis]
        view = source[(slice(None),) * axis + (slice(start, start + size),)]
        start += size
        target = phantom(kind)
        calls.append(copy(Part(context.input(operand), source, view), Part(context.output(index), target, target)))
    return calls


def split(context: LoweringContext) -> list[Call] | None:
    axis = context.constant(0)
    return None if axis is None else _split_along(context, 1, int(axis.reshape(-1)[0]) % context.inputs[1].rank)


def split_v(context: LoweringContext) -> list[Call] | None:
    axis = context.constant(2)
    return None if axis is None else _split_along(context, 0, int(axis.reshape(-1)[0]) % context.inputs[0].rank)


def pad(context: LoweringContext) -> list[Call] | None:
    paddings = context.constant(1)
    kind, output = context.inputs[0], context.outputs[0]
    if paddings is None or not _movable(kind):
        return None
    value = kind.dtype.type(0)
    if context.node.op == "PADV2":
        given = context.constant(2)
        if given is None:
            return None
        value = given.reshape(-1)[0]
    elif kind.quantization is not None:
        value = kind.dtype.type(kind.quantization.zero_point[0])
    target = phantom(output)
    window = target[tuple(slice(int(b), int(b) + n) for (b, _), n in zip(paddings, kind.shape, strict=True))]
    source = phantom(kind)
    inside = copy(Part(context.input(0), source, source), Part(context.output(), target, window))
    return [fill(context.output(), target.size, value), inside]


def tile(context: LoweringContext) -> list[Call] | None:
    multiples = context.constant(1)
    if multiples is None:
        return None
    shape = context.inputs[0].shape
    spread = [n for m, d in zip(multiples, shape, strict=True) for n in (int(m), d)]
    source = phantom(context.inputs[0])
    view = np.broadcast_to(source.reshape([n for d in shape for n in (1, d)]), spread)
    return _whole(context, source, view, spread)


def broadcast_to(context: LoweringContext) -> list[Call] | None:
    source = phantom(context.inputs[0])
    return _whole(context, source, np.broadcast_to(source, context.outputs[0].shape))


def space_to_depth(context: LoweringContext) -> list[Call] | None:
    n, h, w, c = context.inputs[0].shape
    b = context.attributes.block_size
    source = phantom(context.inputs[0])
    view = source.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
    return _whole(context, source, view, view.shape)


def depth_to_space(context: LoweringContext) -> list[Call] | None:
    n, h, w, c = context.inputs[0].shape
    b = context.attributes.block_size
    source = phantom(context.inputs[0])
    view = source.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5)
    return _whole(context, source, view, view.shape)


def resize_nearest_neighbor(context: LoweringContext) -> list[Call] | None:
    """Whole multiples only, which UpSampling2D asks for: each pixel becomes a block."""
    (n, h, w, c), (_, height, width, _) = context.inputs[0].shape, context.outputs[0].shape
    if height % h or width % w or context.attributes.align_corners:
        return None
    spread = (n, h, height // h, w, width // w, c)
    source = phantom(context.inputs[0])
    view = np.broadcast_to(source.reshape(n, h, 1, w, 1, c), spread)
    return _whole(context, source, view, spread)


LOWERINGS = {
    "TRANSPOSE": transpose,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "CONCATENATION": concatenation,
    "PACK": pack,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "PAD": pad,
    "PADV2": pad,
    "TILE": tile,
    "BROADCAST_TO": broadcast_to,
    "SPACE_TO_DEPTH": space_to_depth,
    "DEPTH_TO_SPACE": depth_to_space,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest_neighbor,
}


def lower(context: LoweringContext) -> list[Call] | None:
    if not _movable(context.inputs[0]) or any(0 in (t.shape or ()) for t in context.outputs):
        return None
    return LOWERINGS[context.node.op](context)
