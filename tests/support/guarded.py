"""Kernels on memory that ends, or starts, at a page that may not be touched: an access outside kills the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from runtime.kernels.table import lowering_for
from runtime.lowering.base import Address, Call, KernelAddress, LoweringContext, PackedWeights, Parameters
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import native_function
from runtime.plan import Plan
from runtime.steps import NativeStep
from schema import Graph, Node, evaluate
from schema.graph import Tensor, TensorType
from schema.inference import size_in_bytes

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """`size` bytes of which one end touches a page without access; the other end is as near as alignment allows."""

    def __init__(self, size: int, at_end: bool, alignment: int = 1):
        room = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, room + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for page in (start, start + PAGE + room):
            if _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect failed")
        offset = (room - size) // alignment * alignment if at_end else 0
        self.address = start + PAGE + offset
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.address))

    def array(self, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        return self.bytes.view(dtype).reshape(shape)


def guarded_copy(array: np.ndarray, at_end: bool) -> Guarded:
    block = Guarded(array.nbytes, at_end)
    block.bytes[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return block


def run_guarded(node: Node, inputs: dict[Tensor, np.ndarray], at_end: bool) -> list[np.ndarray]:
    """The node's outputs from its kernels, with every operand, packed constant and scratch between guard pages."""
    arrays = [None if t is None else inputs.get(t, t.value) for t in node.inputs]
    expected = evaluate.run_node(node, arrays)
    types = [None if t is None else t.type for t in node.inputs]
    outputs = [TensorType(e.shape, e.dtype, t.quantization) for t, e in zip(node.outputs, expected, strict=True)]
    values = [None if t is None else t.value for t in node.inputs]
    context = LoweringContext(node, types, outputs, values, "TFLITE_DOUBLE", PackedWeights(1 << 30))
    lower = lowering_for(node.op)
    calls = lower(context) if lower else None
    assert calls, f"no kernel for {node}"
    places = {t: guarded_copy(a, at_end) for t, a in inputs.items()}
    places |= {t: Guarded(k.nbytes, at_end) for t, k in zip(node.outputs, expected, strict=True)}
    for call in calls:
        _run(call, places, at_end)
    return [places[t].array(k.dtype, k.shape).copy() for t, k in zip(node.outputs, expected, strict=True)]


def run_guarded_graph(graph: Graph, arrays: list[np.ndarray], at_end: bool) -> list[np.ndarray]:
    """The graph's outputs from the kernels of its plan, as run_guarded; every node must have one."""
    plan = Plan(graph, [a.shape for a in arrays], PackedWeights(1 << 30), "TFLITE_DOUBLE", 1 << 30)
    (step,) = plan.steps
    assert isinstance(step, NativeStep)
    places = {t: guarded_copy(a, at_end) for t, a in zip(graph.inputs, arrays, strict=True)}
    types = {t: plan.inference.types[t] for node in step.nodes for t in node.outputs}
    places |= {t: Guarded(size_in_bytes(kind), at_end) for t, kind in types.items()}
    for call in step.calls:
        _run(call, places, at_end)
    return [places[t].array(types[t].dtype, types[t].shape).copy() for t in graph.outputs]


def _run(call: Call, places: dict[Tensor, Guarded], at_end: bool) -> None:
    alive: list[Guarded] = []
    params = _pack(call, places, at_end, alive)
    scratch = Guarded(call.scratch, at_end, 64)
    kernel = native_function(kernel_library().load([call.family])[call.symbol])
    for begin in range(0, call.tiles, call.grain):
        end = min(begin + call.grain, call.tiles)
        assert kernel(params.ctypes.data, begin, end, scratch.address) == 0


def _pack(call: Call | Parameters, places: dict[Tensor, Guarded], at_end: bool, alive: list[Guarded]) -> np.ndarray:
    """The parameter block. alive: takes in what it points to."""
    numbers = {}
    for slot, value in call.params.items():
        if isinstance(value, Parameters):
            value = _pack(value, places, at_end, alive)
        if isinstance(value, Address):
            numbers[slot] = places[value.tensor].address + value.offset
        elif isinstance(value, KernelAddress):
            numbers[slot] = kernel_library().load([value.family])[value.symbol]
        elif isinstance(value, np.ndarray):
            alive.append(guarded_copy(value, at_end))
            numbers[slot] = alive[-1].address
        else:
            numbers[slot] = value
    return call.block.pack(numbers)
