"""Lists of tensors, which loops of recurrent layers and map_fn keep: one tensor, the elements along its axis 0."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Reserved, Result, reads
from schema.errors import UnsupportedError
from schema.graph import Shape, Tensor, TensorType
from schema.ops.calls import narrowed

INT32 = np.dtype(np.int32)


@reads("TensorListReserve")
def reserve(reading: Reading) -> Result:
    sizes = reading.value(0, "the shape of a list's elements")
    element = None if sizes.ndim == 0 else tuple(None if size < 0 else int(size) for size in sizes)
    return Reserved(reading.name, reading.tensor(1), element, reading.attribute("element_dtype"), reading.builder)


@reads("TensorListFromTensor")
def from_tensor(reading: Reading) -> Result:
    return reading.tensor(0)


@reads("TensorListStack")
def stack(reading: Reading) -> Result:
    return reading.tensor(0)


@reads("TensorListLength")
def length(reading: Reading) -> Result:
    value = reading.inputs[0]
    return value.length if isinstance(value, Reserved) else _length(reading, reading.tensor(0))


@reads("TensorListGetItem")
def get_item(reading: Reading) -> Result:
    return reading.emit("GATHER", reading.tensor(0), reading.tensor(1), axis=0, batch_dims=0)


@reads("TensorListSetItem")
def set_item(reading: Reading) -> Result:
    """SELECT_V2 of the item where the index is, and of the list elsewhere."""
    if reading.attribute("resize_if_index_out_of_bounds"):
        raise UnsupportedError("lists of tensors that grow are not supported; give a TensorArray its size")
    items, index, item = reading.tensor(0), reading.tensor(1), reading.tensor(2)
    rank = reading.rank(item)
    count = (reading.shape(items) or (None,))[0]
    zero, one = reading.constant(0, INT32), reading.constant(1, INT32)
    end = _length(reading, items) if count is None else reading.constant(count, INT32)
    places = reading.emit("RANGE", zero, end, one)
    here = reading.emit("EQUAL", places, index if index.dtype == INT32 else reading.emit("CAST", index, dtype=INT32))
    mask = reading.emit("RESHAPE", here, reading.constant([-1] + [1] * rank, INT32))
    result = reading.emit("SELECT_V2", mask, reading.emit("EXPAND_DIMS", item, zero), items)
    shape: Shape | None = (count, *(reading.shape(item) or ()))
    if (before := reading.shape(items)) is not None and len(before) != rank + 1:
        raise UnsupportedError(f"a list of elements of {len(before) - 1} axes gets one of {rank}")
    result.shape = narrowed(reading.shape(result), shape, "a list's element") if before is None else result.shape
    reading.builder.inference.types[result] = TensorType(result.shape, result.dtype)
    return result


def _length(reading: Reading, items: Tensor) -> Tensor:
    shape = reading.emit("SHAPE", items, dtype=INT32)
    bounds = [reading.constant([n], INT32) for n in (0, 1, 1)]
    return reading.emit("STRIDED_SLICE", shape, *bounds, shrink_axis_mask=1)
