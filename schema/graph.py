"""The graph in memory: what front ends produce, passes rewrite, the file stores and the engine plans.

Plain dataclasses with object references: a node holds its tensors, a tensor knows nothing of its nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schema.quantization import Quantization

Shape = tuple["int | None", ...]
"""A dimension of None is known only when the model runs."""


@dataclass(frozen=True)
class TensorType:
    """What shape and dtype inference speaks of. shape None: not even the rank is known."""

    shape: Shape | None
    dtype: np.dtype
    quantization: Quantization | None = None

    def __post_init__(self):
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(None if d is None else int(d) for d in self.shape))

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        return self.shape is not None and None not in self.shape

    def __str__(self) -> str:
        shape = "?" if self.shape is None else "x".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.dtype}[{shape}]"


@dataclass(frozen=True, eq=False)
class Constant:
    """A stored value: values x channel_scale (along `axis`), cast to the tensor's dtype.

    `values` may have a smaller dtype than its tensor (float16, int8): it is widened when loaded. The factor is kept
    apart so that a kernel with few distinct values keeps them when BatchNorm is folded into it.
    """

    values: np.ndarray
    channel_scale: np.ndarray | None = None  # float32 (values.shape[axis],)
    axis: int = 0

    def dense(self, dtype: np.dtype) -> np.ndarray:
        """The whole tensor, C-contiguous, read-only."""
        array = np.asarray(self.values)
        if self.channel_scale is not None:
            shape = [1] * array.ndim
            shape[self.axis] = -1
            array = array.astype(np.float32) * np.asarray(self.channel_scale, np.float32).reshape(shape)
        array = np.require(array, dtype, "C").view()
        array.flags.writeable = False
        return array

    def part(self, axis: int, start: int, stop: int) -> Constant:
        """Elements `start` to `stop` along an axis, which share their memory with this one's."""
        return Constant(np.asarray(self.values)[_along(axis, start, stop)], self._scale(axis, start, stop), self.axis)

    def release(self) -> None:
        """Forget what can be made again."""

    def _scale(self, axis: int, start: int, stop: int) -> np.ndarray | None:
        scale = self.channel_scale
        return scale[start:stop] if scale is not None and axis == self.axis else scale


class IndexedConstant(Constant):
    """A constant of few distinct values, in memory as in its file: an index for each, and a codebook.

    `values` are made when they are asked for, and not kept.
    """

    indices: np.ndarray
    codebook: np.ndarray

    def __init__(
        self, indices: np.ndarray, codebook: np.ndarray, channel_scale: np.ndarray | None = None, axis: int = 0
    ):
        given = {"indices": indices, "codebook": codebook, "channel_scale": channel_scale, "axis": axis}
        self.__dict__.update(given)  # past the frozen base

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return self.codebook[self.indices]

    def part(self, axis: int, start: int, stop: int) -> Constant:
        indices, scale = self.indices[_along(axis, start, stop)], self._scale(axis, start, stop)
        return IndexedConstant(indices, self.codebook, scale, self.axis)


class StoredConstant(Constant):
    """A constant of a file, whose streams are decoded again when it is asked for after its release."""

    decode: Callable[[], Constant]

    def __init__(self, decode: Callable[[], Constant]):
        """Raises what `decode` raises: it is called at once."""
        now = decode()
        given = {"decode": decode, "channel_scale": now.channel_scale, "axis": now.axis, "_now": now}
        self.__dict__.update(given)  # past the frozen base

    @property
    def decoded(self) -> Constant:
        now = self.__dict__["_now"]
        if now is None:
            now = self.__dict__["_now"] = self.decode()
        return now

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        return self.decoded.values

    def dense(self, dtype: np.dtype) -> np.ndarray:
        return self.decoded.dense(dtype)

    def part(self, axis: int, start: int, stop: int) -> Constant:
        return self.decoded.part(axis, start, stop)

    def release(self) -> None:
        self.__dict__["_now"] = None


def _along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, stop))


@dataclass(eq=False)
class Tensor:
    """A value that flows along an edge, or a constant. `name` is for people: edges are object references."""

    name: str
    dtype: np.dtype
    shape: Shape | None = None
    quantization: Quantization | None = None
    constant: Constant | None = None
    _value: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self):
        self.dtype = np.dtype(self.dtype)

    @classmethod
    def from_array(cls, name: str, array: np.ndarray, quantization: Quantization | None = None) -> Tensor:
        """A constant tensor."""
        array = np.asarray(array)
        return cls(name, array.dtype, array.shape, quantization, Constant(array))

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype, self.quantization)

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    @property
    def value(self) -> np.ndarray | None:
        """The constant's dense array (kept until `release`), None for a tensor that is computed."""
        if self.constant is None:
            return None
        value = self._value
        if value is None:
            value = self._value = self.constant.dense(self.dtype)
        return value

    def release(self) -> None:
        """Forget the dense array: `value` makes it again. For what stands in memory in another form from now on."""
        self._value = None
        if self.constant is not None:
            self.constant.release()

    def set_constant(self, constant: Constant) -> None:
        """Replace the stored value (and the cached dense array)."""
        self.constant, self._value, self.shape = constant, None, np.shape(constant.values)


@dataclass(eq=False)
class Node:
    """One operation. `attributes` is an instance of the op's Attributes dataclass, None for ops that have none.

    An input of None is an optional one left out. `name` is the layer's name in the source model. Attributes of IF and
    WHILE hold graphs, each of which belongs to that node alone.
    """

    op: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    attributes: Any = None
    name: str = ""

    @property
    def subgraphs(self) -> dict[str, Graph]:
        """The graphs that the node runs, by the name of the attribute that holds them."""
        if not dataclasses.is_dataclass(self.attributes):
            return {}
        values = ((f.name, getattr(self.attributes, f.name)) for f in dataclasses.fields(self.attributes))
        return {name: value for name, value in values if isinstance(value, Graph)}

    def __str__(self) -> str:
        return f"{self.op} '{self.name}'" if self.name else self.op


@dataclass(eq=False)
class Graph:
    """Nodes in an order in which they can run, and the signature: named inputs and outputs in declared order.

    A graph is a function, whatever it remembers: `state` holds constants, the initial values of as many of the last
    inputs. The last outputs are the values that these inputs have in the next run. Whoever runs the graph keeps them.
    """

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    input_names: list[str] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    name: str = "serving_default"
    state: list[Tensor] = field(default_factory=list)

    @property
    def arguments(self) -> list[Tensor]:
        """The inputs that a caller gives: all but the state."""
        return self.inputs[: len(self.inputs) - len(self.state)]

    @property
    def argument_names(self) -> list[str]:
        return self.input_names[: len(self.inputs) - len(self.state)]

    @property
    def results(self) -> list[Tensor]:
        """The outputs that a caller gets: all but the next state."""
        return self.outputs[: len(self.outputs) - len(self.state)]

    @property
    def result_names(self) -> list[str]:
        return self.output_names[: len(self.outputs) - len(self.state)]

    @property
    def state_names(self) -> list[str]:
        return self.input_names[len(self.inputs) - len(self.state) :]

    def tensors(self) -> list[Tensor]:
        """All tensors, inputs first, then in the order in which nodes name them."""
        seen: dict[int, Tensor] = {}
        for tensor in self.inputs:
            seen.setdefault(id(tensor), tensor)
        for node in self.nodes:
            for used in (*node.inputs, *node.outputs):
                if used is not None:
                    seen.setdefault(id(used), used)
        for tensor in (*self.outputs, *self.state):
            seen.setdefault(id(tensor), tensor)
        return list(seen.values())


@dataclass(eq=False)
class Model:
    """What one `.xnn` file holds. graphs[0] is the one that runs; graphs that nodes run need not be listed."""

    graphs: list[Graph]
    requantization: str = "TFLITE_DOUBLE"
    producer: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return self.graphs[0]


def nested(graph: Graph) -> Iterator[Graph]:
    """The graph, and all graphs that its nodes run, each before those inside of it."""
    yield graph
    for node in graph.nodes:
        for inner in node.subgraphs.values():
            yield from nested(inner)


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of the graph and of all graphs that they run."""
    return (node for inner in nested(graph) for node in inner.nodes)


def types_of(tensors: Sequence[Tensor | None]) -> list[TensorType | None]:
    return [None if tensor is None else tensor.type for tensor in tensors]
