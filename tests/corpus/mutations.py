"""Mutated files behind right checksums: random bytes of sound files, and sound graphs with hostile numbers in them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from schema import Constant, Graph, Model, Quantization, Tensor, container, reseal, write
from schema.dtypes import TO_NUMPY
from schema.graph import nested
from tests.corpus import models

INTEGERS = (-(2**31), -(2**16), -3, -2, -1, 0, 1, 2, 3, 4, 7, 64, 1000, 2**16, 2**20, 2**28, 2**30, 2**31 - 1)
REALS = (0.0, -0.0, 1e-45, 1e-38, 1e-6, 0.5, -1.0, 1.0, 2.0, 1e6, 3e38, float("inf"), float("-inf"), float("nan"))
SCALES = (1e-45, 1e-38, 1e-20, 1e-6, 1 / 256, 1 / 128, 1 / 16, 1.0, 1e6, 1e20, 3e38)
CHOICES = {
    "padding": ("VALID", "SAME", "EXPLICIT"),
    "activation": ("NONE", "RELU", "RELU6", "RELU_N1_TO_1", "CLAMP"),
    "mode": ("REFLECT", "SYMMETRIC"),
}
BYTES = (0, 1, 2, 4, 8, 64, 127, 128, 255)


def bytes_of(data: bytes, draw: random.Random) -> bytes:
    """The file with some bytes changed and its checksums right again."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8])):
        changed[draw.randrange(len(changed) - 8)] = draw.choice([*BYTES, draw.randrange(256)])
    try:
        return reseal(bytes(changed))
    except ValueError:  # the section table itself
        return bytes(changed)


def columns_of(graph: Graph, draw: random.Random) -> bytes:
    """The file of a graph with some bytes of its metadata in columns changed."""
    sections = container.unpack(write(Model([graph])))
    if container.COLUMNS not in sections:
        return container.pack({kind: bytes(section) for kind, section in sections.items()})
    changed = bytearray(sections[container.COLUMNS])
    for _ in range(draw.choice([1, 1, 2, 8])):
        changed[draw.randrange(len(changed))] = draw.choice([*BYTES, draw.randrange(256)])
    kept = {kind: bytes(section) for kind, section in sections.items() if kind != container.COLUMNS}
    return container.pack({container.COLUMNS: deflated(bytes(changed))} | kept)


def deflated(columns: bytes) -> bytes:
    """The section of these columns, which deflate as far as sections may."""
    section = container.deflated_columns(columns)
    assert section is not None
    return section


def numbers_of(graph: Graph, draw: random.Random) -> bytes | None:
    """The file of a graph in which some numbers are hostile (the graph is changed); None where a file cannot say it."""
    for _ in range(draw.choice([1, 1, 2, 3])):
        inner = draw.choice(list(nested(graph)))
        draw.choice([_shape, _constant, _constant, _quantization, _attribute, _attribute, _dtype])(inner, draw)
    try:
        return write(Model([graph], draw.choice(["TFLITE_DOUBLE", "FP32_ROUND_EVEN"])))
    except (ValueError, TypeError, OverflowError, KeyError, IndexError, NotImplementedError):
        return None


def _shape(graph: Graph, draw: random.Random) -> None:
    tensor = draw.choice(graph.inputs) if graph.inputs else draw.choice(graph.tensors())
    shape = list(tensor.shape or ())
    change = draw.randrange(4)
    if change == 0 or not shape:
        shape.insert(draw.randint(0, len(shape)), draw.choice([None, 0, 1, 2, 5]))
    elif change == 1:
        shape.pop(draw.randrange(len(shape)))
    else:
        shape[draw.randrange(len(shape))] = draw.choice([None, 0, 1, 2, 3, 5, 17, 64])
    tensor.shape = tuple(shape)


def _constant(graph: Graph, draw: random.Random) -> None:
    constants = [t for t in graph.tensors() if t.is_constant]
    if not constants:
        return
    tensor = draw.choice(constants)
    values = np.array(tensor.constant.values)
    if values.ndim and draw.random() < 0.1:  # nothing, beside dimensions of any size
        shape = [draw.choice([1, 3, 2**12, 2**15]) for _ in range(values.ndim)]
        shape[draw.randrange(values.ndim)] = 0
        tensor.set_constant(Constant(np.zeros(shape, values.dtype)))
        return
    if values.size == 0 or draw.random() < 0.15:
        size = draw.choice([0, 1, 2, 3, 4, 5])
        tensor.set_constant(Constant(np.resize(values, (size,) * values.ndim) if values.size else values))
        return
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.randrange(values.size)
        if values.dtype.kind == "f":
            values.reshape(-1)[place] = draw.choice(REALS)
        elif values.dtype.kind == "b":
            values.reshape(-1)[place] ^= True
        else:
            info = np.iinfo(values.dtype)
            values.reshape(-1)[place] = max(info.min, min(draw.choice(INTEGERS), info.max))
    tensor.set_constant(Constant(values))


def _quantization(graph: Graph, draw: random.Random) -> None:
    tensors = [t for t in graph.tensors() if t.quantization is not None]
    if not tensors:
        return
    tensor = draw.choice(tensors)
    change = draw.randrange(4)
    if change == 0:
        tensor.quantization = None
    elif change == 1:
        channels = draw.choice([2, 3, 4, 5])
        tensor.quantization = Quantization([draw.choice(SCALES)] * channels, 0, draw.choice([0, 1, 2, 3]))
    else:
        tensor.quantization = Quantization(draw.choice(SCALES), draw.choice([-128, -1, 0, 1, 127]))


def _attribute(graph: Graph, draw: random.Random) -> None:
    node = draw.choice(graph.nodes) if graph.nodes else None
    if node is None or node.attributes is None:
        return
    field = draw.choice(dataclasses.fields(node.attributes))
    value: Any = getattr(node.attributes, field.name)
    if isinstance(value, Graph):
        value = draw.choice([*nested(graph)][1:])
    elif field.name in CHOICES:
        value = draw.choice(CHOICES[field.name])
    elif isinstance(value, bool):
        value = not value
    elif isinstance(value, int):
        value = draw.choice(INTEGERS)
    elif isinstance(value, float):
        value = draw.choice(REALS)
    elif isinstance(value, tuple):
        value = tuple(draw.choice([0, 1, 2, 3, *INTEGERS]) for _ in range(draw.choice([0, 1, 4, 6])))
    else:
        value = draw.choice(list(TO_NUMPY.values()))
    node.attributes = dataclasses.replace(node.attributes, **{field.name: value})


def _dtype(graph: Graph, draw: random.Random) -> None:
    """Another dtype, of all inputs and outputs or of one tensor."""
    dtype = draw.choice(list(TO_NUMPY.values()))
    tensors: list[Tensor] = [t for t in graph.tensors() if not t.is_constant]
    for tensor in tensors if draw.random() < 0.7 else [draw.choice(tensors)]:
        tensor.dtype = np.dtype(dtype)
        if dtype.kind not in "iu":
            tensor.quantization = None
        elif dtype.itemsize <= 2 and draw.random() < 0.8:
            tensor.quantization = Quantization(draw.choice(SCALES), 0)


def mutated(count: int, seed: int = models.SEED) -> dict[str, bytes]:
    """name -> bytes: as many of each model."""
    draw = random.Random(seed)
    result: dict[str, bytes] = {}
    names = models.files()
    for _ in range(count):
        for (name, data), graph in zip(names.items(), models.graphs(), strict=True):
            ways: list[Callable[[], bytes | None]] = [
                lambda data=data: bytes_of(data, draw),  # type: ignore[misc]
                lambda graph=graph: columns_of(graph, draw),  # type: ignore[misc]
                lambda graph=graph: numbers_of(graph, draw),  # type: ignore[misc]
            ]
            file = draw.choices(ways, [0.2, 0.2, 0.6])[0]()
            if file is not None:
                result[f"{name}-{len(result):05d}"] = file
    return result
