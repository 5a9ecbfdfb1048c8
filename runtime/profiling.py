"""Where the time of a model goes: each node by itself, beside what this machine does at its best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import schema
from runtime import fusion
from runtime.native.executor import KernelCall, NativePlan
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import WALKER, default_threads
from runtime.plan import Plan
from runtime.session import Model
from runtime.steps import Part
from schema import costs
from schema.graph import Graph, Node, Tensor
from schema.inference import Inference
from schema.ops.attributes import Conv2DAttributes
from schema.quantization import Quantization

PRODUCT = (768, 256, 256)  # rows, depth and columns of the product that stands for the machine's best
PRODUCT_RUNS = 200
_PIXELS = (24, 32)  # the rows, as a convolution has them

Run = Callable[["int | None"], object]


@dataclass(frozen=True)
class NodeProfile:
    """One node. microseconds: median. bytes_moved: inputs, weights and outputs, each once; None where sizes depend on
    data. peak: GMAC/s of the product in the node's dtype; None where the node has no products, or its dtype no kernel.
    """

    layer: str
    op: str
    kernel: str
    microseconds: float
    macs: int = 0
    bytes_moved: int | None = None
    peak: float | None = None

    @property
    def gmacs(self) -> float | None:
        """1e9 multiply-accumulates a second."""
        return self.macs / self.microseconds / 1e3 if self.macs and self.microseconds else None

    @property
    def share_of_peak(self) -> float | None:
        return self.gmacs / self.peak if self.gmacs and self.peak else None

    @property
    def gigabytes(self) -> float | None:
        """1e9 bytes a second."""
        return self.bytes_moved / self.microseconds / 1e3 if self.bytes_moved and self.microseconds else None


@dataclass(frozen=True)
class Profile:
    """call: microseconds of a whole call, median. overhead: microseconds of starting one node by itself, which are
    already taken off. peaks: GMAC/s of the product by dtype.
    """

    nodes: list[NodeProfile]
    call: float
    overhead: float
    peaks: dict[str, float]
    arena_bytes: int


def profile(model: Model, inputs: Sequence[np.ndarray], runs: int, threads: int | None) -> Profile:
    """Run the nodes one by one, `runs` times in the model's order, then whole calls.

    inputs: arrays for the graph's inputs, those of the state among them. threads: None for what the machine offers.
    """
    plan = model.plan(inputs)
    parts, tail = plan.parts(), plan.tail
    overhead = _overhead(runs, threads)
    dtypes = {dtype for part in parts if (dtype := _product_dtype(part.node, plan.inference)) is not None}
    peaks = {dtype: _peak(dtype, threads, overhead) for dtype in sorted(dtypes)}
    steps: list[Run] = [part.run for part in parts]
    medians = _medians([*steps, plan.read_outputs], runs, threads, lambda: plan.write_inputs(inputs))
    nodes = [_node(plan, *measured, overhead, peaks) for measured in zip(parts, medians, strict=False)]
    if tail:
        what = f"{len(tail)} nodes, since sizes depend on data"
        nodes.append(NodeProfile(what, " ".join(sorted({node.op for node in tail})), "reference", medians[-1]))
    call = _medians([lambda threads: plan.run(inputs, threads)], runs, threads)[0]
    return Profile(nodes, call, overhead, peaks, plan.arena.nbytes)


def _node(plan: Plan, part: Part, median: float, overhead: float, peaks: dict[str, float]) -> NodeProfile:
    node, types = part.node, plan.inference.types
    dtype = _product_dtype(node, plan.inference)
    return NodeProfile(
        node.name,
        "+".join(fusion.members(node)),
        part.kernel,
        max(median - overhead, 0.0) if part.native else median,
        fusion.macs(node, plan.inference),
        costs.bytes_of([*fusion.reads(node), *node.outputs], types),
        None if dtype is None else peaks[dtype],
    )


def _product_dtype(node: Node, inference: Inference) -> str | None:
    """The dtype in which a node multiplies, of those that the product is measured in."""
    dtype = inference.types[node.outputs[0]].dtype.name
    return dtype if dtype in ("float32", "int8") and fusion.macs(node, inference) else None


def _medians(
    steps: Sequence[Run], runs: int, threads: int | None, prepare: Callable[[], object] = lambda: None
) -> list[float]:
    """Median microseconds of each of `steps`, run one after another; the first turn is left out."""
    times = np.zeros((runs + 1, len(steps)))
    for turn in range(runs + 1):
        prepare()
        for index, step in enumerate(steps):
            start = time.perf_counter_ns()
            step(threads)
            times[turn, index] = time.perf_counter_ns() - start
    return list(np.median(times[1:], axis=0) / 1e3)


def _overhead(runs: int, threads: int | None) -> float:
    """Microseconds that it takes to run one record of a plan that does nothing, with as many workers."""
    workers = default_threads() if threads is None else threads
    nothing = kernel_library().load([WALKER])["xnn_nothing"]
    plan = NativePlan([KernelCall(nothing, np.zeros(1, np.int64), tiles=workers)])
    return _medians([lambda threads: plan.run(threads, first=0, count=1)], max(runs, PRODUCT_RUNS), threads)[0]


def _peak(dtype: str, threads: int | None, overhead: float) -> float:
    """GMAC/s of PRODUCT as a graph of one convolution, bias (and for int8 requantization) included.

    All of it fits into a core's caches.
    """
    rows, depth, columns = PRODUCT
    graph, x = _product(np.dtype(dtype))
    plan = Model(schema.Model([graph]), threads).plan([x])
    plan.write_inputs([x])
    median = _medians([part.run for part in plan.parts()], PRODUCT_RUNS, threads)[0]
    return rows * depth * columns / max(median - overhead, 1e-3) / 1e3


def _product(dtype: np.dtype) -> tuple[Graph, np.ndarray]:
    """PRODUCT as a convolution of 1 x 1, and its input."""
    _, depth, columns = PRODUCT
    rng = np.random.default_rng(0)
    shape, weights_shape = (1, *_PIXELS, depth), (columns, 1, 1, depth)
    if dtype == np.int8:
        array, weights = (rng.integers(-127, 128, s, dtype=np.int8) for s in (shape, weights_shape))
        x, y = Tensor("x", dtype, shape, Quantization(0.05, 3)), Tensor("y", dtype, None, Quantization(5.0, -5))
        scales = rng.uniform(0.01, 0.03, columns).astype(np.float32)
        bias = rng.integers(-(2**14), 2**14, columns, dtype=np.int32)
        constants = [
            Tensor.from_array("weights", weights, Quantization(scales, 0, 0)),
            Tensor.from_array("bias", bias, Quantization(np.float32(0.05) * scales, 0, 0)),
        ]
    else:
        array, weights = (rng.standard_normal(s).astype(dtype) for s in (shape, weights_shape))
        x, y = Tensor("x", dtype, shape), Tensor("y", dtype)
        constants = [Tensor.from_array("weights", weights), Tensor.from_array("bias", np.zeros(columns, dtype))]
    node = Node("CONV_2D", [x, *constants], [y], Conv2DAttributes(), "product")
    return Graph([node], [x], ["x"], [y], ["y"]), array
