"""Running the float graph over calibration data, and the range that each activation takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from converter.quantize import matrices, observers
from converter.quantize.calibration import Batch, Batches
from converter.quantize.execution import Execution, LoopExecution
from converter.quantize.loop_states import unchanged
from converter.quantize.moments import Moments
from converter.quantize.placement import Placement, is_real
from converter.quantize.rules import INT8, INT16, Scales
from converter.quantize.scales import Form, Range, constant_range, representable
from schema import inference
from schema.errors import CalibrationError
from schema.graph import Graph, Node, Shape, Tensor

Progress = Callable[[str, int, "int | None"], None]
"""Called with what is going on ("calibration"), how many samples are done, and of how many (None: not known)."""

BATCH_SIZE = 32
MEMORY = 1 << 28  # bytes of activations that are held at once
DERIVED = (Scales.SHARED, Scales.FIXED, Scales.CARRIED)
EXPONENTIAL = ("SOFTMAX", "LOG_SOFTMAX")
COARSEST = 4.0  # a step between exponents that only masking with a huge negative number gives
LARGEST_WIDE = 40_000.0  # beyond it a step of int16 takes more than the 15 bits that LOGISTIC and TANH have for it
WIDE_OBSERVER = "minmax"
"""Of int16, which has bits enough for all values that are seen."""
NOT_FINITE = "its values are not finite on the calibration data"


@dataclass
class Observed:
    """ranges: of each form of a tensor, real numbers. unbounded: tensors that no range can represent, and why.

    moments: of the inputs of linear ops, by the tensor of their weights.
    """

    samples: int = 0
    ranges: dict[Form, Range] = field(default_factory=dict)
    unbounded: dict[Tensor, str] = field(default_factory=dict)
    moments: dict[Tensor, Moments] = field(default_factory=dict)


def to_observe(placement: Placement, io_dtype: np.dtype | None) -> list[Form]:
    """Forms whose range has to be seen, in the graph's order: those that nodes touch, unless `derive` knows them.

    io_dtype: that inputs and outputs become, None where they stay float.
    """
    graph = placement.graph
    wanted: dict[Form, None] = {}
    derived: set[Form] = set()
    for node, rule in placement.rules.items():
        read = placement.activations(node)
        if rule.scales is Scales.CARRIED:  # the body knows the others
            read = [(slot, tensor) for slot, tensor in read if slot in unchanged(node)]
        wanted.update({(tensor, rule.dtype): None for _, tensor in read})
        if rule.scales is not Scales.INDICES:
            wanted.update({(tensor, rule.dtype): None for tensor in node.outputs})
        if rule.scales in DERIVED:
            derived.update((tensor, rule.dtype) for tensor in node.outputs)
    if io_dtype is not None:
        ends = [t for t in (*graph.inputs, *graph.outputs) if is_real(t) and not t.is_constant]
        wanted.update({(tensor, io_dtype): None for tensor in ends})
    order = {tensor: i for i, tensor in enumerate(graph.tensors())}
    return sorted(wanted.keys() - derived, key=lambda form: (order[form[0]], form[1].itemsize))


def linear_nodes(placement: Placement) -> list[Node]:
    """Quantized nodes whose weights are rounded to suit their inputs."""
    return [node for node in placement.rules if node.op in matrices.OPS]


def derive(placement: Placement, observed: Observed) -> None:
    """Add the ranges that follow from others: those of moved integers, and those that the op gives."""
    for node, rule in placement.rules.items():
        if rule.scales is Scales.CARRIED:
            body = node.attributes.body
            for slot in rule.data_inputs(0):
                ends = [observed.ranges[tensor, rule.dtype] for tensor in (body.inputs[slot], body.outputs[slot])]
                observed.ranges[node.outputs[slot], rule.dtype] = (
                    min(low for low, _ in ends),
                    max(high for _, high in ends),
                )
        if rule.scales not in (Scales.SHARED, Scales.FIXED):
            continue
        sources = [(tensor, rule.dtype) for _, tensor in placement.data(node)]
        if sources[0] in observed.ranges:
            reason = _too_coarse(node.op, rule.dtype, *observed.ranges[sources[0]])
            if reason is not None:
                observed.unbounded[sources[0][0]] = reason
        reasons = [observed.unbounded[tensor] for tensor, _ in sources if tensor in observed.unbounded]
        results = [(tensor, rule.dtype) for tensor in node.outputs]
        if rule.fixed is not None:
            observed.ranges.update(dict.fromkeys(results, representable(rule.fixed, rule.dtype)))
        elif reasons:
            observed.unbounded.update(dict.fromkeys(node.outputs, reasons[0]))
        else:
            ranges = [constant_range(f[0]) if f[0].is_constant else observed.ranges[f] for f in sources]
            whole = min(low for low, _ in ranges), max(high for _, high in ranges)
            observed.ranges.update(dict.fromkeys(results, whole))


def _too_coarse(op: str, dtype: np.dtype, low: float, high: float) -> str | None:
    """Why integers of this range are no operand of an exponential function, None where they are."""
    if op in EXPONENTIAL and high - low > COARSEST * (np.iinfo(dtype).max - np.iinfo(dtype).min):
        return f"values from {low:.4g} to {high:.4g}, as masks make them, need more bits"
    if op in ("LOGISTIC", "TANH") and dtype == INT16 and max(-low, high) > LARGEST_WIDE:
        return f"values from {low:.4g} to {high:.4g} are too large for int16 {op}"
    return None


def batch_size(graph: Graph, tensors: Iterable[Tensor]) -> int:
    """How many samples of this graph to run at once, where its inputs do not fix that."""
    inputs = [tensor.shape or (1,) for tensor in graph.inputs]
    size = sum(_bytes(shape) for shape in _shapes(graph, tensors, [(s[0] or 1, *s[1:]) for s in inputs]))
    return max(1, min(BATCH_SIZE, MEMORY // max(size, 1)))


def observe(
    graph: Graph,
    batches: Batches,
    forms: Sequence[Form],
    linear: Sequence[Node],
    observer: str,
    progress: Progress | None = None,
    loops: Mapping[Node, Graph] | None = None,
) -> Observed:
    """The ranges of the graph's inputs and computed tensors named in `forms`, and moments of the inputs of `linear`.

    observer: of int8. loops: WHILE nodes of the graph, and their bodies, in which some of these may be.
    """
    result = Observed()
    watched: dict[Tensor, dict[np.dtype, observers.Observer]] = {}
    for tensor, dtype in forms:
        watched.setdefault(tensor, {})[dtype] = observers.create(observer if dtype == INT8 else WIDE_OBSERVER)
    fed: dict[Tensor, list[Moments]] = {}
    for node in linear:
        data, weights = node.inputs[:2]
        assert data is not None and weights is not None
        # Layers that share a kernel share its moments.
        moments = result.moments.setdefault(weights, Moments(node))
        fed.setdefault(data, []).append(moments)
    seen = list(dict.fromkeys([*watched, *fed]))
    inside = {node: [tensor for tensor in seen if tensor in body] for node, body in _tensors(loops or {}).items()}
    repeated = [LoopExecution(graph, node, tensors) for node, tensors in inside.items() if tensors]
    seen = [tensor for tensor in seen if not any(tensor in tensors for tensors in inside.values())]
    executions: dict[tuple[Shape, ...], list[Execution]] = {}
    for batch in batches:
        shapes = tuple(array.shape for array in batch)
        if shapes not in executions:
            executions[shapes] = _executions(graph, seen, shapes)
        for tensor, array in _values(graph, batch, seen, executions[shapes], repeated):
            if not np.isfinite(array).all():
                result.unbounded[tensor] = NOT_FINITE
                continue
            for watching in watched.get(tensor, {}).values():
                watching.see(array)
            for moments in fed.get(tensor, ()):
                moments.add(array)
        result.samples += batch[0].shape[0] if batch and batch[0].ndim else 1
        if progress is not None:
            progress("calibration", result.samples, batches.samples)
    for tensor, dtype in forms:
        if tensor not in result.unbounded:
            result.ranges[tensor, dtype] = _usable(tensor, *watched[tensor][dtype].range())
    result.moments = {weights: moments for weights, moments in result.moments.items() if moments.enough()}
    return result


def _values(
    graph: Graph,
    batch: Batch,
    tensors: Sequence[Tensor],
    executions: Sequence[Execution],
    loops: Sequence[LoopExecution],
) -> Iterator[tuple[Tensor, np.ndarray]]:
    """The values of `tensors` for a batch, a few at a time, and those in the iterations of loops."""
    given = dict(zip(graph.inputs, batch, strict=True))
    yield from ((tensor, given[tensor]) for tensor in tensors if tensor in given)
    for execution in executions:
        yield from zip(execution.tensors, execution(batch), strict=True)
    for loop in loops:
        for arrays in loop(batch):
            yield from zip(loop.tensors, arrays, strict=True)


def _tensors(loops: Mapping[Node, Graph]) -> dict[Node, set[Tensor]]:
    """What is in the bodies of loops."""
    return {node: {*body.inputs, *body.tensors()} for node, body in loops.items()}


def _executions(graph: Graph, tensors: Iterable[Tensor], shapes: Sequence[Shape]) -> list[Execution]:
    """Of all tensors, in as many parts as keep what is held at once below MEMORY."""
    computed = [tensor for tensor in tensors if tensor not in graph.inputs]
    groups: list[list[Tensor]] = []
    held = MEMORY
    for tensor, shape in zip(computed, _shapes(graph, computed, shapes), strict=True):
        size = _bytes(shape)
        if held + size > MEMORY:
            groups.append([])
            held = 0
        groups[-1].append(tensor)
        held += size
    return [Execution(graph, group) for group in groups]


def _shapes(graph: Graph, tensors: Iterable[Tensor], shapes: Sequence[Shape]) -> list[Shape | None]:
    types = inference.infer(graph, shapes).types
    return [types[tensor].shape for tensor in tensors]


def _bytes(shape: Shape | None) -> int:
    """Of a float32 tensor; dimensions that only running tells count as 1."""
    return 4 * math.prod(d or 1 for d in shape or ())


def _usable(tensor: Tensor, low: float, high: float) -> Range:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise CalibrationError(f"'{tensor.name}' takes values from {low} to {high} on the calibration data")
    return low, high
