"""Ops that move elements between tensors: joining, splitting, padding, looking up, rearranging."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.graph import Tensor


@reads("ConcatV2")
def concat_v2(reading: Reading) -> Result:
    *parts, _ = reading.tensors()
    return _concat(reading, parts, reading.integer(-1, "the axis"))


@reads("Concat")
def concat(reading: Reading) -> Result:
    _, *parts = reading.tensors()
    return _concat(reading, parts, reading.integer(0, "the axis"))


def _concat(reading: Reading, parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else reading.emit("CONCATENATION", *parts, axis=axis)


@reads("Split")
def split(reading: Reading) -> Result:
    axis = reading.constant(reading.integer(0, "the axis"), np.int32)
    return reading.emit_all("SPLIT", axis, reading.tensor(1), num=reading.attribute("num_split"))


@reads("SplitV")
def split_v(reading: Reading) -> Result:
    x, sizes, _ = reading.tensors()
    axis = reading.constant(reading.integer(2, "the axis"), np.int32)
    return reading.emit_all("SPLIT_V", x, sizes, axis, num=reading.attribute("num_split"))


@reads("Pack")
def pack(reading: Reading) -> Result:
    return reading.emit("PACK", *reading.tensors(), axis=reading.attribute("axis"))


@reads("Unpack")
def unpack(reading: Reading) -> Result:
    number, axis = reading.attribute("num"), reading.attribute("axis")
    return reading.emit_all("UNPACK", reading.tensor(0), num=number, axis=axis)


@reads("Transpose")
def transpose(reading: Reading) -> Result:
    return reading.transpose(reading.tensor(0), *np.ravel(reading.value(1, "the order of axes")))


@reads("Pad")
def pad(reading: Reading) -> Result:
    return reading.emit("PAD", *reading.tensors())


@reads("PadV2")
def pad_v2(reading: Reading) -> Result:
    value = reading.builder.value(reading.tensor(2))
    if value is not None and not np.any(value):
        return reading.emit("PAD", *reading.tensors()[:2])
    return reading.emit("PADV2", *reading.tensors())


@reads("MirrorPad")
def mirror_pad(reading: Reading) -> Result:
    return reading.emit("MIRROR_PAD", *reading.tensors(), mode=reading.attribute("mode"))


@reads("Tile")
def tile(reading: Reading) -> Result:
    return reading.emit("TILE", *reading.tensors())


@reads("GatherV2")
def gather(reading: Reading) -> Result:
    axis = reading.integer(2, "the axis")
    return reading.emit(
        "GATHER", reading.tensor(0), reading.tensor(1), axis=axis, batch_dims=reading.attribute("batch_dims") or 0
    )


@reads("Gather")
def gather_rows(reading: Reading) -> Result:
    return reading.emit("GATHER", reading.tensor(0), reading.tensor(1), axis=0, batch_dims=0)


@reads("GatherNd")
def gather_nd(reading: Reading) -> Result:
    return reading.emit("GATHER_ND", *reading.tensors())


@reads("OneHot")
def one_hot(reading: Reading) -> Result:
    return reading.emit("ONE_HOT", *reading.tensors(), axis=reading.attribute("axis"))


@reads("ReverseV2")
def reverse(reading: Reading) -> Result:
    return reading.emit("REVERSE_V2", *reading.tensors())


@reads("SpaceToBatchND")
def space_to_batch(reading: Reading) -> Result:
    return reading.emit("SPACE_TO_BATCH_ND", *reading.tensors())


@reads("BatchToSpaceND")
def batch_to_space(reading: Reading) -> Result:
    return reading.emit("BATCH_TO_SPACE_ND", *reading.tensors())


@reads("DepthToSpace", "SpaceToDepth")
def blocks(reading: Reading) -> Result:
    op = "DEPTH_TO_SPACE" if reading.node.op == "DepthToSpace" else "SPACE_TO_DEPTH"
    x = reading.channels_last(reading.tensor(0))
    return reading.restored(reading.emit(op, x, block_size=reading.attribute("block_size")))
