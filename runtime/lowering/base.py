"""What a lowering sees and what it gives back. Lowerings know nothing of memory plans or threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from runtime.kernels.parameters import ParameterBlock
from schema.errors import MemoryLimitError
from schema.graph import Node, Tensor, TensorType
from schema.inference import Inference

ALIGNMENT = 64


@dataclass(frozen=True)
class Address:
    """The place of a tensor's data, `offset` bytes in: a number only once the plan's arena is laid out."""

    tensor: Tensor
    offset: int = 0


@dataclass(frozen=True)
class Parameters:
    """A parameter block in another one's slot, where its address goes."""

    block: ParameterBlock
    params: Mapping[str, Any]


@dataclass(frozen=True)
class KernelAddress:
    """Where a kernel is: in the parameters of one that calls others."""

    family: str
    symbol: str


@dataclass(frozen=True)
class Call:
    """One kernel over `tiles` tiles, taken `grain` at a time by the workers.

    family: the module under runtime/kernels that holds `symbol`. Parameters may be numbers, Addresses, KernelAddresses,
    or arrays (their address is passed, and they are kept alive). scratch: bytes of working memory that each worker
    needs.
    """

    family: str
    symbol: str
    block: ParameterBlock
    params: Mapping[str, Any]
    tiles: int
    grain: int = 1
    scratch: int = 0


def families(call: Call | Parameters) -> set[str]:
    """The families of all kernels that a call runs."""
    found = {call.family} if isinstance(call, Call) else set()
    for value in call.params.values():
        if isinstance(value, KernelAddress):
            found.add(value.family)
        elif isinstance(value, Parameters):
            found |= families(value)
    return found


@dataclass
class PackedWeights:
    """Arrays that lowerings derive from constants, made once per model and shared by all its plans.

    limit: bytes that all of them may take. Tensors can share what a file stores once, so its size is no bound.
    """

    limit: int
    size: int = 0
    arrays: dict[Any, np.ndarray] = field(default_factory=dict)

    def get(self, key: Any, make: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self.arrays:
            array = self.arrays[key] = aligned(make())
            self.size += array.nbytes
            if self.size > self.limit:
                raise MemoryLimitError(f"the packed weights take more than the limit of {self.limit} bytes")
        return self.arrays[key]


@dataclass(frozen=True)
class Values(Sequence["np.ndarray | None"]):
    """The values of tensors, made when they are asked for: what is packed already needs no dense weights."""

    known: Inference
    tensors: Sequence[Tensor | None]

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, index):
        return self.known.value(self.tensors[index])


@dataclass(frozen=True)
class LoweringContext:
    """A node whose shapes are all known. Types are static; a constant operand has no Address but an array.

    before: of the node that is computed within this one (see runtime.fusion). stages: of a chain's (runtime.chains).
    row_stride: bytes between rows of the output, for ops in runtime.storage.STRIDED_OPS; None: one follows another.
    """

    node: Node
    inputs: Sequence[TensorType | None]
    outputs: Sequence[TensorType]
    values: Sequence[np.ndarray | None]  # of constants and of folded shape arithmetic
    requantization: str
    weights: PackedWeights
    row_stride: int | None = None
    before: LoweringContext | None = None
    stages: Sequence[LoweringContext] = ()

    @property
    def attributes(self) -> Any:
        return self.node.attributes

    def constant(self, index: int) -> np.ndarray | None:
        """The value of an input that is known before the model runs, else None."""
        return self.values[index] if index < len(self.values) else None

    def part(self, index: int, axis: int, start: int, stop: int) -> np.ndarray:
        """The value of a known input, elements `start` to `stop` along an axis: no others are made for that."""
        tensor = self.node.inputs[index]
        if tensor is not None and tensor.constant is not None:
            return tensor.constant.part(axis, start, stop).dense(tensor.dtype)
        return self._known(index)[(*[slice(None)] * axis, slice(start, stop))]

    def is_constant(self, index: int) -> bool:
        """Whether an input is known before the model runs. Weights are not expanded to tell."""
        tensor = self.node.inputs[index] if index < len(self.node.inputs) else None
        return tensor is not None and (tensor.is_constant or self.constant(index) is not None)

    def input(self, index: int) -> Address | np.ndarray:
        """Where the kernel finds an input: an Address, or the (packed, aligned) array of a constant."""
        tensor = self.node.inputs[index]
        if tensor is None:
            raise ValueError(f"{self.node} has no input {index}")
        return self.packed("plain", lambda: self._known(index), index) if self.is_constant(index) else Address(tensor)

    def _known(self, index: int) -> np.ndarray:
        value = self.constant(index)
        assert value is not None
        return value

    def output(self, index: int = 0) -> Address:
        return Address(self.node.outputs[index])

    def packed(self, layout: Any, make: Callable[[], np.ndarray], index: int = 1) -> np.ndarray:
        """The array that `make` derives from constant input `index`, 64-byte aligned, made once per model: nodes of one
        op that share weights share it.

        `layout` names the derivation together with all it depends on but the op and the constant itself. Values that
        are no constants of the file (folded shape arithmetic) are not cached.
        """
        tensor = self.node.inputs[index]
        if tensor is None or not tensor.is_constant:
            return aligned(make())
        return self.weights.get((self.node.op, tensor, layout), make)

    def derived(self, layout: Any, make: Callable[[], np.ndarray]) -> np.ndarray:
        """As `packed`, for what follows from attributes and quantization alone: tables, multipliers."""
        return self.weights.get((*self._owner, layout), make)

    @property
    def _owner(self) -> tuple[str, int, int]:
        """What the node is in every plan. Fused nodes are made for each plan and may be gone when another comes; what
        they make, and their weights, are tensors of the graph.
        """
        weights = self.node.inputs[1] if len(self.node.inputs) > 1 else None
        return self.node.op, id(self.node.outputs[0]), id(weights)


Lowering = Callable[[LoweringContext], "list[Call] | None"]
"""Calls that compute the node, or None where there is no kernel for this case: the planner then runs the reference."""


def aligned(array: np.ndarray) -> np.ndarray:
    """A C-contiguous copy (or the array itself, where it already is) that starts at a multiple of 64 bytes."""
    array = np.ascontiguousarray(array)
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = empty_aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def empty_aligned(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """An array that starts at a multiple of 64 bytes, of no values yet."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)
