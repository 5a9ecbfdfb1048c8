"""A model prepared for one set of input shapes: kernels chosen, weights packed, memory laid out.

Running it allocates only the outputs. Steps are native calls (runs of consecutive nodes with kernels) and host steps
(nodes without one, run by their references, and nodes that run other graphs, which have plans of their own). Where a
size depends on data, what follows cannot be laid out: it runs by the references, node by node.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np

from runtime import chains, control_flow, fusion, sharing
from runtime.kernels.table import lowering_for
from runtime.lowering import elementwise_chain
from runtime.lowering.base import (
    Address,
    Call,
    KernelAddress,
    LoweringContext,
    PackedWeights,
    Parameters,
    Values,
    aligned,
    families,
)
from runtime.memory_planner import Layout, plan_memory
from runtime.native.executor import KernelCall, NativePlan
from runtime.native.kernel_library import kernel_library
from runtime.steps import HostStep, NativeStep, Part
from runtime.storage import Storage
from schema import evaluate, fixedpoint, inference, limits
from schema.errors import ExecutionError, MemoryLimitError, XnnError
from schema.graph import Graph, Node, Shape, Tensor
from schema.inference import CONTROL_FLOW, Inference, place

PLANS_KEPT = 8  # sets of input shapes whose plans are kept


class Plan:
    """Raises ShapeError, naming the node, where these shapes do not fit the graph, and MemoryLimitError where they
    need more than `memory_limit` bytes at once.
    """

    def __init__(
        self,
        graph: Graph,
        input_shapes: Sequence[Shape],
        weights: PackedWeights,
        requantization: str,
        memory_limit: int,
    ):
        self.graph = graph
        self.requantization = requantization
        self.memory_limit = memory_limit
        self._lock = threading.Lock()
        self.inference = inference.infer(graph, input_shapes)
        static, self.tail = _split(graph, self.inference)
        computed = [node for node in static if any(t not in self.inference.values for t in node.outputs)]
        later = [*graph.outputs, *(t for n in self.tail for t in n.inputs)]
        computed = chains.chain(fusion.fuse(computed, self.inference, later), self.inference, later)
        needed_later = {t for node in self.tail for t in node.inputs if t is not None}
        self.storage = Storage(graph.inputs, computed, [*graph.outputs, *needed_later], self.inference.types)
        layout = plan_memory(self.storage.requests())
        self._check_memory(layout.total)
        self._calls = {
            node: Calls(node, weights, requantization, memory_limit - layout.total)
            for node in graph.nodes
            if node.op in CONTROL_FLOW
        }
        with fixedpoint.requantization(requantization):
            self.steps = self._lower([n for n in computed if not self.storage.is_view(n)], weights)
        self._lay_out(layout)

    def _check_memory(self, total: int) -> None:
        """Before anything is allocated: a few bytes of a file can ask for any size."""
        if total <= self.memory_limit:
            return
        largest = max(self.storage.lives, key=lambda root: self.storage.lives[root].size)
        makers = [node for node in self.graph.nodes if largest in node.outputs]
        place = str(makers[0]) if makers else f"input '{largest.name}'"
        raise MemoryLimitError(
            f"{place}: {self.inference.types[largest]} is the largest of the tensors that together take {total} bytes, "
            f"more than the limit of {self.memory_limit}: use smaller inputs or a larger memory_limit"
        )

    def _context(self, node: Node, weights: PackedWeights) -> LoweringContext:
        types, section = self.inference.types, self.storage.sections.get(node.outputs[0])
        return LoweringContext(
            node,
            [None if t is None else types[t] for t in node.inputs],
            [types[t] for t in node.outputs],
            Values(self.inference, node.inputs),
            self.requantization,
            weights,
            None if section is None else section.row_stride,
            self._context(node.before, weights) if isinstance(node, fusion.Fused) and node.before else None,
            [self._context(s.node, weights) for s in node.stages] if isinstance(node, chains.Chain) else (),
        )

    def _lower(self, nodes: list[Node], weights: PackedWeights) -> list[NativeStep | HostStep]:
        steps: list[NativeStep | HostStep] = []
        for node in nodes:
            context = self._context(node, weights)
            lowering = elementwise_chain.lower if isinstance(node, chains.Chain) else lowering_for(node.op)
            calls = None if lowering is None else lowering(context)
            _release(context)
            if calls is None:
                calling = self._calls.get(node)
                steps.append(
                    HostStep(node, calling, input_types=list(context.inputs), output_types=list(context.outputs))
                )
                continue
            if not steps or isinstance(steps[-1], HostStep):
                steps.append(NativeStep())
            step = steps[-1]
            assert isinstance(step, NativeStep)
            step.nodes.append(node)
            step.calls += calls
            step.counts.append(len(calls))
        return steps

    def _lay_out(self, layout: Layout) -> None:
        """Place every storage in one arena, then turn symbolic addresses into numbers."""
        roots = list(self.storage.lives)
        self.arena = aligned(np.zeros(max(layout.total, 1), np.uint8))
        offsets = dict(zip(roots, layout.offsets, strict=True))
        starts = {t: offsets[root] + self.storage.offset(t) for t, root in self.storage.root.items()}
        self._views = {t: self._view(t, start) for t, start in starts.items()}
        self._input_views = [self._views[tensor] for tensor in self.graph.inputs]
        self._output_views = [] if self.tail else [self._known_or_view(tensor) for tensor in self.graph.outputs]
        read = {*self.graph.outputs, *(tensor for node in self.graph.nodes for tensor in node.inputs)}
        self._unread = {i for i, tensor in enumerate(self.graph.inputs) if tensor not in read}
        ends = enumerate(zip(self.graph.inputs, self.graph.outputs))  # noqa: B905
        self._unchanged = {i for i, (given, result) in ends if given is result}
        base = self.arena.ctypes.data
        places = {t: base + start for t, start in starts.items()}
        calls = [call for step in self.steps if isinstance(step, NativeStep) for call in step.calls]
        symbols = kernel_library().load(dict.fromkeys(family for call in calls for family in families(call)))
        for step in self.steps:
            if isinstance(step, HostStep):
                step.inputs = [self._known_or_view(t) for t in step.node.inputs]
                step.outputs = [self._views[t] for t in step.node.outputs]
            else:
                names = [str(node) for node, count in zip(step.nodes, step.counts, strict=True) for _ in range(count)]
                step.plan = NativePlan(
                    [_resolve(call, places, symbols, name) for call, name in zip(step.calls, names, strict=True)],
                    alone=not sharing.is_worth_it(step.nodes, self.inference),
                )

    def _view(self, tensor: Tensor, offset: int) -> np.ndarray:
        kind = self.inference.types[tensor]
        section = self.storage.sections.get(tensor)
        if section is not None:
            whole = self._view(section.whole, offset - section.offset)
            first = section.offset // kind.dtype.itemsize
            return whole[..., first : first + (kind.shape or ())[-1]]
        size = kind.dtype.itemsize * int(np.prod(kind.shape, dtype=np.int64))
        return self.arena[offset : offset + size].view(kind.dtype).reshape(kind.shape)

    def _known_or_view(self, tensor: Tensor | None) -> np.ndarray | None:
        value = self.inference.value(tensor)
        return value if value is not None or tensor is None else self._views[tensor]

    def run(self, arrays: Sequence[np.ndarray], threads: int | None = None, again: bool = False) -> list[np.ndarray]:
        """The graph's outputs, as new arrays. One call at a time: the arena is the plan's own.

        again: as a loop's body, with the outputs of the last call. What is handed on unchanged is in the arena already,
        and is given back as it is.
        """
        unchanged = self._unchanged if again else ()
        with self._lock:
            self.write_inputs(arrays, unchanged)
            for step in self.steps:
                if isinstance(step, NativeStep):
                    step.plan.run(threads)  # type: ignore[union-attr]
                else:
                    self.run_step(step, threads)
            return self.read_outputs(threads, {i: arrays[i] for i in unchanged})

    def repeated(self, threads: int | None) -> Callable[[np.ndarray], np.ndarray] | None:
        """`run` from one array to one, without a look at what cannot change from call to call; None where that is
        needed: the steps must be one native call that the calling thread makes alone.
        """
        native = self.steps[0].plan if len(self.steps) == 1 and isinstance(self.steps[0], NativeStep) else None
        if native is None or not len(self._input_views) == len(self._output_views) == 1:
            return None
        if not native.is_alone(threads):
            return None
        (view,), (output,), lock, run = self._input_views, self._output_views, self._lock, native.run_alone

        def repeat(array: np.ndarray) -> np.ndarray:
            with lock:
                view[...] = array
                run()
                return output.copy()

        return repeat

    def write_inputs(self, arrays: Sequence[np.ndarray], there: Collection[int] = ()) -> None:
        """there: which inputs are in the arena already."""
        for index, (view, array) in enumerate(zip(self._input_views, arrays, strict=True)):
            if index not in there and index not in self._unread:
                view[...] = array

    def run_step(self, step: NativeStep | HostStep, threads: int | None = None) -> None:
        if isinstance(step, HostStep):
            try:
                with fixedpoint.requantization(self.requantization):
                    step.run(threads)
            except XnnError as error:
                raise place(step.node, error) from None
            except MemoryError as error:
                raise MemoryLimitError(f"{step.node}: {error}") from None
        else:
            assert step.plan is not None
            step.plan.run(threads)

    def parts(self) -> list[Part]:
        """The nodes that run, in order. Running all of them one by one is running the plan."""
        parts = []
        for step in self.steps:
            if isinstance(step, HostStep):
                kernel = "reference" if step.calls is None else "graphs"
                parts.append(Part(step.node, kernel, False, partial(self.run_step, step)))
                continue
            assert step.plan is not None
            first = 0
            for node, count in zip(step.nodes, step.counts, strict=True):
                names = dict.fromkeys(c.symbol.removeprefix("xnn_") for c in step.calls[first : first + count])
                parts.append(Part(node, " ".join(names), True, partial(step.plan.run, first=first, count=count)))
                first += count
        return parts

    def read_outputs(
        self, threads: int | None = None, known: Mapping[int, np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """known: outputs by position that need not be read."""
        known = known or {}
        if not self.tail:
            return [known[i] if i in known else np.array(view) for i, view in enumerate(self._output_views)]
        values = self._run_tail(threads)
        return [known[i] if i in known else self._output(t, values) for i, t in enumerate(self.graph.outputs)]

    def _output(self, tensor: Tensor, values: dict[Tensor, np.ndarray]) -> np.ndarray:
        array = values.get(tensor)
        return np.array(self._known_or_view(tensor) if array is None else array)

    def _run_tail(self, threads: int | None) -> dict[Tensor, np.ndarray]:
        values: dict[Tensor, np.ndarray] = {}
        with fixedpoint.requantization(self.requantization), limits.memory(self.memory_limit):
            for node in self.tail:
                arrays = [values[t] if t in values else self._known_or_view(t) for t in node.inputs]
                results = self._run_node(node, arrays, threads)
                values.update(zip(node.outputs, results, strict=True))
        return values

    def _run_node(self, node: Node, arrays: list[np.ndarray | None], threads: int | None) -> list[np.ndarray]:
        if node not in self._calls:
            return evaluate.run_node(node, arrays)
        try:
            return self._calls[node].run(arrays, threads)
        except XnnError as error:
            raise place(node, error) from None


class Plans:
    """The plans of one graph for the sets of input shapes that came last."""

    def __init__(self, graph: Graph, weights: PackedWeights, requantization: str, memory_limit: int):
        self._graph, self._weights, self._requantization = graph, weights, requantization
        self._memory_limit = memory_limit
        self._kept: OrderedDict[tuple, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, arrays: Sequence[np.ndarray]) -> Plan:
        """The plan for these inputs' shapes."""
        shapes = tuple(array.shape for array in arrays)
        with self._lock:
            plan = self._kept.get(shapes)
            if plan is None:
                plan = Plan(self._graph, shapes, self._weights, self._requantization, self._memory_limit)
                self._kept[shapes] = plan
                if len(self._kept) > PLANS_KEPT:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(shapes)
            return plan


class Calls:
    """The graphs that a node runs, each with its plans. memory_limit: bytes that are left for one plan."""

    def __init__(self, node: Node, weights: PackedWeights, requantization: str, memory_limit: int):
        self._node, self._requantization, self._memory_limit = node, requantization, memory_limit
        self._plans = {
            name: Plans(graph, weights, requantization, memory_limit) for name, graph in node.subgraphs.items()
        }

    def run(self, arrays: Sequence[np.ndarray | None], threads: int | None) -> list[np.ndarray]:
        last: dict[str, Plan] = {}
        calls = {name: partial(self._call, name, threads, last) for name in self._plans}
        return control_flow.run(self._node, calls, [array for array in arrays if array is not None])

    def _call(
        self, name: str, threads: int | None, last: dict[str, Plan], arrays: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """last: the plan that ran last in this run of the node, by name."""
        if all(array.size for array in arrays):
            plan = self._plans[name].of(arrays)
            again, last[name] = name == "body" and last.get(name) is plan, plan
            return plan.run(arrays, threads, again)
        with limits.memory(self._memory_limit):  # kernels are made for arrays that hold something
            return evaluate.run(self._node.subgraphs[name], arrays)


def _split(graph: Graph, known: Inference) -> tuple[list[Node], list[Node]]:
    """(nodes whose sizes are known, the rest: from the first one of unknown size on)."""
    for index, node in enumerate(graph.nodes):
        if not all(known.types[t].is_static for t in node.outputs):
            return graph.nodes[:index], graph.nodes[index:]
    return list(graph.nodes), []


def _release(context: LoweringContext) -> None:
    """Dense arrays of weights, made to be packed: one layer's at a time, not the net's."""
    for tensor in context.node.inputs:
        if tensor is not None:
            tensor.release()
    for inner in (context.before, *context.stages):
        if inner is not None:
            _release(inner)


def _resolve(call: Call, places: dict[Tensor, int], symbols: dict[str, int], name: str) -> KernelCall:
    if call.symbol not in symbols:
        raise ExecutionError(f"kernel {call.symbol} is not in the family {call.family}")
    alive: list[np.ndarray] = []
    params = _pack(call, places, symbols, alive)
    return KernelCall(symbols[call.symbol], params, call.tiles, call.grain, call.scratch, alive, name)


def _pack(
    call: Call | Parameters, places: dict[Tensor, int], symbols: dict[str, int], alive: list[np.ndarray]
) -> np.ndarray:
    """The block with numbers in all slots. alive: takes in the arrays that it points to."""
    numbers = {}
    for slot, value in call.params.items():
        if isinstance(value, Parameters):
            value = _pack(value, places, symbols, alive)
        if isinstance(value, Address):
            numbers[slot] = places[value.tensor] + value.offset
        elif isinstance(value, KernelAddress):
            numbers[slot] = symbols[value.symbol]
        elif isinstance(value, np.ndarray):
            alive.append(value)
            numbers[slot] = value.ctypes.data
        else:
            numbers[slot] = value
    return call.block.pack(numbers)
