"""A loaded model: call it like a function."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import schema
from runtime.lowering.base import PackedWeights
from runtime.plan import Plan, Plans
from runtime.signature import TensorInfo, bind, describe
from schema import inference, limits
from schema.errors import ExecutionError, InputError, MemoryLimitError, ShapeError
from schema.graph import nested
from schema.ops.calls import narrowed


class Model:
    """An `.xnn` model on this machine's CPU.

    `model(x)`, `model(a, b)`, `model({"name": a})`: one output gives an array, several a dict in declared order.
    Plans are made for each set of input shapes and the most recent are kept. Safe to call from several threads.

    What a model remembers from one call to the next (`state`) belongs to this object. A call that fails leaves it as
    it was; calls that come at the same time take their turns.
    """

    def __init__(
        self,
        model: schema.Model,
        threads: int | None = None,
        memory_limit: int | None = None,
        iteration_limit: int | None = None,
    ):
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}; it is 1 or more, or None for what the machine has")
        if memory_limit is not None and memory_limit < 1:
            raise InputError(
                f"memory_limit is {memory_limit}; it is a number of bytes, or None for what the machine has"
            )
        if iteration_limit is not None and iteration_limit < 1:
            raise InputError(f"iteration_limit is {iteration_limit}; it is 1 or more, or None for 2^31 - 1")
        self._model = model
        self._threads = threads
        self._iteration_limit = limits.MAX_ITERATIONS if iteration_limit is None else iteration_limit
        self._memory_limit = physical_memory() if memory_limit is None else memory_limit
        self._weights = PackedWeights(self._memory_limit)
        graph = model.graph
        self._plans = Plans(graph, self._weights, model.requantization, self._memory_limit)
        self._lock = threading.Lock()  # of the state
        self._plain = not graph.state and sum(1 for _ in nested(graph)) == 1
        self._latest: tuple = (
            None,
            None,
            None,
        )  # shape and dtype of the only array last called with, how to repeat that
        constants = sum(inference.size_in_bytes(t.type) for g in nested(graph) for t in g.tensors() if t.is_constant)
        if constants > self._memory_limit:
            raise MemoryLimitError(f"the constants take {constants} bytes, more than the limit of {self._memory_limit}")
        types = inference.infer(graph).types
        self.inputs: list[TensorInfo] = [
            describe(n, t, t.shape) for n, t in zip(graph.argument_names, graph.arguments, strict=True)
        ]
        self.outputs: list[TensorInfo] = [
            describe(n, t, types[t].shape) for n, t in zip(graph.result_names, graph.results, strict=True)
        ]
        self.reset_state()

    @property
    def graph(self) -> schema.Graph:
        """The graph that runs (read only)."""
        return self._model.graph

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._model.metadata

    def __call__(self, *args: Any, **kwargs: Any) -> np.ndarray | dict[str, np.ndarray]:
        """Run once. Raises InputError for arrays that do not fit, ExecutionError when a kernel fails."""
        if len(args) == 1 and not kwargs and type(args[0]) is np.ndarray:
            shape, dtype, repeat = self._latest
            if args[0].shape == shape and args[0].dtype == dtype:
                return repeat(args[0])  # small nets are over before more could be looked at
        arrays = bind(self.graph, args, kwargs)
        results = self._run(arrays)
        if len(arrays) == 1 and self._plain:
            plan = self.plan(arrays)
            self._latest = (arrays[0].shape, arrays[0].dtype, plan.repeated(self._threads) or self._repeated(plan))
        return self._named(results)

    def predict(self, *args: Any, batch_size: int = 32) -> np.ndarray | dict[str, np.ndarray]:
        """Run over samples on axis 0, `batch_size` at a time, and concatenate (as Keras's predict does)."""
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; it is 1 or more")
        arrays = bind(self.graph, args)
        counts = {a.shape[0] if a.ndim else 0 for a in arrays}
        if len(counts) != 1 or 0 in counts:
            raise InputError(f"predict takes the same number of samples for each input, not {sorted(counts)}")
        runs = []
        for start in range(0, counts.pop(), batch_size):
            batch = [a[start : start + batch_size] for a in arrays]
            runs.append(self._run(batch))
        return self._named([np.concatenate(parts) for parts in zip(*runs, strict=True)])

    def plan(self, arrays: Sequence[np.ndarray]) -> Plan:
        """The plan for these inputs' shapes, those of the state among them."""
        return self._plans.of(arrays)

    @property
    def state(self) -> dict[str, np.ndarray]:
        """What the model remembers, by name; {} for most models."""
        with self._lock:
            return {name: array.copy() for name, array in zip(self.graph.state_names, self._state, strict=True)}

    def reset_state(self) -> None:
        """Forget all calls: the state is what it was when the model was loaded."""
        with self._lock:
            self._state = [np.array(tensor.value) for tensor in self.graph.state]

    def _run(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The results, and the state changed."""
        with limits.iterations(self._iteration_limit):
            if not self.graph.state:
                return self.plan(arrays).run(arrays, self._threads)
            with self._lock:
                given = [*arrays, *self._state]
                outputs = self.plan(given).run(given, self._threads)
                count = len(self.graph.results)
                self._state = self._checked_state(outputs[count:])
                return outputs[:count]

    def _checked_state(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        graph = self.graph
        try:
            for name, tensor, array in zip(graph.state_names, graph.inputs[-len(arrays) :], arrays, strict=True):
                narrowed(array.shape, tensor.shape, f"state '{name}'")
        except ShapeError as error:
            raise ExecutionError(str(error)) from None
        return arrays

    def _repeated(self, plan: Plan) -> Callable[[np.ndarray], np.ndarray | dict[str, np.ndarray]]:
        return lambda array: self._named(plan.run([array], self._threads))

    def _named(self, arrays: list[np.ndarray]) -> np.ndarray | dict[str, np.ndarray]:
        if len(arrays) == 1:
            return arrays[0]
        return dict(zip(self.graph.result_names, arrays, strict=True))

    def __repr__(self) -> str:
        return f"<runtime.Model of {len(self.graph.nodes)} nodes, {', '.join(map(str, self.inputs))}>"


def load(
    source: bytes | str | os.PathLike,
    threads: int | None = None,
    memory_limit: int | None = None,
    iteration_limit: int | None = None,
) -> Model:
    """The model of an `.xnn` file: its path or its bytes.

    threads: workers of one call; None for what the machine offers (cores, affinity, cgroup quota). memory_limit: bytes
    that the tensors of one run, and apart from them the packed weights, may take; None for the machine's memory. A
    small file can ask for much, so set it where files come from strangers: what needs more raises MemoryLimitError.
    iteration_limit: iterations that the loops of one call may make, all together; None for 2^31 - 1. A file can ask
    for a loop without an end: more raises ExecutionError.
    Raises FormatError, with the place, for anything that is not a sound file.
    """
    return Model(schema.read(source), threads, memory_limit, iteration_limit)


def physical_memory() -> int:
    """Bytes of memory that this machine has, 2^40 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
