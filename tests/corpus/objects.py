"""Single tables of metadata, and small files of them, by flatc's object API, which can say anything."""

from __future__ import annotations

from typing import Any

import flatbuffers

from schema import container
from schema.generated import xnn_generated as fb

INT8, INT32, BOOL = fb.DType.INT8, fb.DType.INT32, fb.DType.BOOL
RELU, CONV, CONCATENATION = fb.OpCode.RELU, fb.OpCode.CONV_2D, fb.OpCode.CONCATENATION
WEIGHTS = bytes(24)


def tensor(**fields: Any) -> fb.TensorT:
    return fb.TensorT(**fields)


def node(op: int, inputs: Any = (0,), outputs: Any = (1,), attributes: Any = None, **fields: Any) -> fb.NodeT:
    kind = 0 if attributes is None else getattr(fb.Attributes, type(attributes).__name__[:-1])
    return fb.NodeT(
        op=op,
        inputs=list(inputs),
        outputs=list(outputs),
        **({"attributesType": kind, "attributes": attributes} | fields),
    )


def constant(**fields: Any) -> fb.ConstantT:
    return fb.ConstantT(**({"values": fb.StreamT(size=len(WEIGHTS))} | fields))


def relu_graph(**changes: Any) -> fb.GraphT:
    """x -> RELU -> y, with the fields in `changes` replaced."""
    fields = dict(
        tensors=[tensor(shape=[2, 3]), tensor()],
        nodes=[node(RELU)],
        inputs=[0],
        inputNames=["x"],
        outputs=[1],
        outputNames=["y"],
    )
    return fb.GraphT(**(fields | changes))


def sealed(*graphs: fb.GraphT, weights: bytes = WEIGHTS, **fields: Any) -> bytes:
    builder = flatbuffers.Builder()
    builder.Finish(fb.ModelT(graphs=list(graphs), **fields).Pack(builder), container.IDENTIFIER)
    return container.pack({container.METADATA: bytes(builder.Output()), container.WEIGHTS: weights})


def one_node(op: int, inputs: Any = (0,), outputs: Any = (1,), attributes: Any = None, **fields: Any) -> bytes:
    return sealed(relu_graph(nodes=[node(op, inputs, outputs, attributes, **fields)]))


def first_tensor(*more: fb.TensorT, **fields: Any) -> bytes:
    """The graph with another input tensor, its output of the same dtype."""
    result = tensor(dtype=fields.get("dtype", 0), scale=1.0 if "dtype" in fields else 0.0)
    return sealed(relu_graph(tensors=[tensor(**fields), result, *more]))


def stored(shape: list[int], of: int = 0, weights: bytes = WEIGHTS, **fields: Any) -> bytes:
    """The graph with tensor 2, a constant of dtype `of`."""
    tensors = [tensor(shape=[2, 3]), tensor(), tensor(shape=shape, dtype=of, constant=constant(**fields))]
    return sealed(relu_graph(tensors=tensors), weights=weights)


def stream(size: int, offset: int = 0, bits: int = 0) -> fb.StreamT:
    return fb.StreamT(offset=offset, size=size, bits=bits, coding=fb.Coding.PACKED if bits else fb.Coding.RAW)


def packed(size: int, bits: int, shape: Any = (24,), weights: bytes = WEIGHTS + bytes(8), coding: int = 1) -> bytes:
    """uint8 numbers of so many bits in `size` bytes."""
    values = fb.StreamT(size=size, bits=bits, coding=coding)
    return stored(list(shape), fb.DType.UINT8, weights, dtype=fb.DType.UINT8, values=values)


def sparse(bitmap: bytes, nonzeros: int, bits: int = 1) -> bytes:
    """Six floats, two values of which are stored, and these positions."""
    positions = stream(len(bitmap), 8, bits)
    return stored([6], weights=bytes(8) + bitmap, values=stream(8), positions=positions, nonzeros=nonzeros)


def clustered(indices: bytes, entries: int, rest: int = 0, bits: int = 0) -> bytes:
    """Floats by their indices into a codebook."""
    codebook = stream(4 * entries + rest, 4, bits)
    return stored([len(indices)], weights=indices + bytes(24), values=stream(len(indices)), codebook=codebook)


def factors(count: int, axis: int = 0, **fields: Any) -> bytes:
    """Six numbers times a factor for each index along an axis."""
    return stored([6], weights=bytes(48), channelScale=stream(4 * count, 24), axis=axis, **fields)


def expected(before: int) -> bytes:
    """Six biases by their differences to what the tensor so many before them lets expect."""
    biases = constant(values=fb.StreamT(size=6, step=0.5), factor=1.0, kernel=before)
    weights = constant(dtype=INT8, values=stream(24))
    kernel = tensor(shape=[6, 4], dtype=INT8, constant=weights)
    tensors = [tensor(shape=[2, 3]), tensor(), kernel, tensor(shape=[6], constant=biases)]
    return sealed(relu_graph(tensors=tensors))


def conv(kernel: list[int], picture: Any = (1, 4, 4, 2), **attributes: Any) -> bytes:
    """A convolution of weights that are all there."""
    count = 1
    for dim in kernel:
        count *= dim
    tensors = [tensor(shape=list(picture)), tensor(), tensor(shape=kernel, constant=constant(values=stream(4 * count)))]
    given = node(CONV, [0, 2], attributes=fb.Conv2DAttributesT(**attributes), name="stem")
    return sealed(relu_graph(tensors=tensors, nodes=[given]), weights=bytes(4 * count))


def rans_table(bits: int, size: int, kind: int = 0, low: int = 0, symbols: int = 1) -> bytes:
    """A table of frequencies: three bytes, then the Rice parameter, levels and padding, the lowest bit first."""
    return bytes([kind, low, symbols - 1]) + bits.to_bytes(size, "little")


def rans(data: bytes, count: int = 24, dtype: int = fb.DType.UINT8, bits: int = 8) -> bytes:
    """So many numbers in an entropy-coded stream."""
    values = fb.StreamT(size=len(data), coding=fb.Coding.RANS, bits=bits)
    return stored([count], dtype, data, dtype=dtype, values=values)


ONE = rans_table(2 << 3, 2)  # symbol 0, which is all there is
TWO = rans_table(2 << 3 | 1 << 10, 2, symbols=2)  # symbols 0 and 1, equally often
RUN = (1 << 16).to_bytes(4, "little")  # the state at the end, and at the start where no symbol changes it
