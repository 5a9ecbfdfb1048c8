"""A loaded model: call it like a function."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

import schema
from runtime.lowering.base import PackedWeights
from runtime.plan import Plan
from runtime.signature import TensorInfo, bind, describe
from schema import inference
from schema.errors import InputError, MemoryLimitError

PLANS_KEPT = 8  # sets of input shapes whose plans are kept


class Model:
    """An `.xnn` model on this machine's CPU.

    `model(x)`, `model(a, b)`, `model({"name": a})`: one output gives an array, several a dict in declared order.
    Plans are made for each set of input shapes and the most recent are kept. Safe to call from several threads.
    """

    def __init__(self, model: schema.Model, threads: int | None = None, memory_limit: int | None = None):
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}; it is 1 or more, or None for what the machine has")
        if memory_limit is not None and memory_limit < 1:
            raise InputError(
                f"memory_limit is {memory_limit}; it is a number of bytes, or None for what the machine has"
            )
        self._model = model
        self._threads = threads
        self._memory_limit = physical_memory() if memory_limit is None else memory_limit
        self._weights = PackedWeights(self._memory_limit)
        self._plans: OrderedDict[tuple, Plan] = OrderedDict()
        self._lock = threading.Lock()
        graph = model.graph
        constants = sum(inference.size_in_bytes(t.type) for t in graph.tensors() if t.is_constant)
        if constants > self._memory_limit:
            raise MemoryLimitError(f"the constants take {constants} bytes, more than the limit of {self._memory_limit}")
        types = inference.infer(graph).types
        self.inputs: list[TensorInfo] = [
            describe(n, t, t.shape) for n, t in zip(graph.input_names, graph.inputs, strict=True)
        ]
        self.outputs: list[TensorInfo] = [
            describe(n, t, types[t].shape) for n, t in zip(graph.output_names, graph.outputs, strict=True)
        ]

    @property
    def graph(self) -> schema.Graph:
        """The graph that runs (read only)."""
        return self._model.graph

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._model.metadata

    def __call__(self, *args: Any, **kwargs: Any) -> np.ndarray | dict[str, np.ndarray]:
        """Run once. Raises InputError for arrays that do not fit, ExecutionError when a kernel fails."""
        arrays = bind(self.graph, args, kwargs)
        return self._named(self.plan(arrays).run(arrays, self._threads))

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
            runs.append(self.plan(batch).run(batch, self._threads))
        return self._named([np.concatenate(parts) for parts in zip(*runs, strict=True)])

    def plan(self, arrays: list[np.ndarray]) -> Plan:
        """The plan for these inputs' shapes."""
        shapes = tuple(a.shape for a in arrays)
        with self._lock:
            plan = self._plans.get(shapes)
            if plan is None:
                plan = Plan(self.graph, shapes, self._weights, self._model.requantization, self._memory_limit)
                self._plans[shapes] = plan
                if len(self._plans) > PLANS_KEPT:
                    self._plans.popitem(last=False)
            else:
                self._plans.move_to_end(shapes)
            return plan

    def _named(self, arrays: list[np.ndarray]) -> np.ndarray | dict[str, np.ndarray]:
        if len(arrays) == 1:
            return arrays[0]
        return dict(zip(self.graph.output_names, arrays, strict=True))

    def __repr__(self) -> str:
        return f"<runtime.Model of {len(self.graph.nodes)} nodes, {', '.join(map(str, self.inputs))}>"


def load(source: bytes | str | os.PathLike, threads: int | None = None, memory_limit: int | None = None) -> Model:
    """The model of an `.xnn` file: its path or its bytes.

    threads: workers of one call; None for what the machine offers (cores, affinity, cgroup quota). memory_limit: bytes
    that the tensors of one run, and apart from them the packed weights, may take; None for the machine's memory. A
    small file can ask for much, so set it where files come from strangers: what needs more raises MemoryLimitError.
    Raises FormatError, with the place, for anything that is not a sound file.
    """
    return Model(schema.read(source), threads, memory_limit)


def physical_memory() -> int:
    """Bytes of memory that this machine has, 2^40 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
