"""Cross-layer equalization: channels of one tensor get ranges that one scale serves.

int8 activations have one scale for a whole tensor. Where channels differ in range by a thousand, as in networks with
depthwise layers and folded BatchNorm, the small ones are lost. Dividing a layer's output channels by factors that the
next layers' input channels are multiplied with leaves the float function as it is: M. Nagel et al., "Data-Free
Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.1.

The paper balances the ranges of both layers' weights, each with one scale for the whole tensor. Here weights have a
scale for each output channel, so that the first layer's do not matter and the activations' ranges do, which calibration
shows. What helps them costs the next layer's weights, whose input channels then differ in size; s = r^a / w^(1-a) for
ranges r and w divides the burden (G. Xiao et al., "SmoothQuant", ICML 2023). The a of each path is the one with the
least expected noise.

Noise is weighed by what becomes of it: squared weights carry it on to the end of a chain of paths, where all channels
count alike. A channel whose noise does not matter is not stretched. It would gain nothing, and a rare channel of which
calibration saw little would be cut off when it is needed.

An activation that cuts off at a number (RELU6) does so for all channels alike. Factors then only make channels larger,
and none beyond HEADROOM below that number on the calibration data: what was not cut off still is not, up to a quarter
more than what calibration saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from converter.linear import LINEAR, bias_of, bias_value, scale_channels, scale_elements, set_operands
from converter.quantize.calibration import Batch
from converter.quantize.channels import paths
from converter.quantize.execution import Execution
from converter.quantize.placement import Placement
from converter.rewriter import Rewriter
from schema.graph import Graph, Node, Tensor

SHARES = (0.25, 0.5, 0.75, 1.0)  # what a is tried
HEADROOM = 1.25
SMALLEST = 2.0**-16  # of the largest factor
WEIGHT_STEPS = 127
WORTHWHILE = 0.5  # dB that the noise of what reads a path has to become less
SPARED = 0.1  # of the noise of activations may be added, in equal shares, so that channels are stretched less


@dataclass(frozen=True)
class ChannelStatistics:
    """float64 (channels,): the largest magnitude and the mean square of each channel on the calibration data."""

    largest: np.ndarray
    square: np.ndarray


@dataclass(frozen=True, eq=False)
class Equalization:
    """What the writer's channels are divided by, float64 (channels,). gain: in dB, expected of what reads them.

    Nodes are told by their position, so that copies of the graph can be changed alike.
    """

    name: str
    writer: int
    readers: tuple[int, ...]
    factors: np.ndarray
    gain: float


def plan(placement: Placement, batches: Sequence[Batch]) -> list[Equalization]:
    """What to equalize in the placement's float graph, whose shapes are annotated."""
    graph = placement.graph
    found = list(paths(graph, placement.rules.__contains__))
    statistics = _observe(graph, [path.writer.outputs[0] for path in found], batches)
    position = {node: number for number, node in enumerate(graph.nodes)}
    planned = []
    weight: dict[Node, np.ndarray] = {}  # of noise in each output channel
    for path in reversed(found):
        seen = statistics[path.writer.outputs[0]]
        readers = [_Reader.of(node, path.channels, seen, weight.get(node)) for node in path.readers]
        weight[path.writer] = np.sum([reader.weight @ reader.power for reader in readers], axis=0)
        steps = 2 ** (8 * placement.rules[path.writer].dtype.itemsize) - 1
        factors, gain = _factors(readers, seen, path.clip, steps)
        if gain >= WORTHWHILE:
            positions = tuple(position[node] for node in path.readers)
            planned.append(Equalization(str(path), position[path.writer], positions, factors, gain))
    return planned[::-1]


def apply(graph: Graph, equalizations: Sequence[Equalization]) -> None:
    """Change the weights and biases of a copy of the graph that was planned for, in place."""
    rewriter = Rewriter(graph)
    nodes = list(graph.nodes)
    for equalization in equalizations:
        _divide_output(rewriter, nodes[equalization.writer], equalization.factors)
        for reader in equalization.readers:
            _multiply_input(rewriter, nodes[reader], equalization.factors)
    rewriter.commit()


def _divide_output(rewriter: Rewriter, node: Node, factors: np.ndarray) -> None:
    operands = LINEAR[node.op]
    weights = scale_channels(node.inputs[operands.weights], operands.out_axis, 1 / factors)
    set_operands(rewriter, node, weights, None if bias_of(node) is None else bias_value(node) / factors)


def _multiply_input(rewriter: Rewriter, node: Node, factors: np.ndarray) -> None:
    operands = LINEAR[node.op]
    weights = node.inputs[operands.weights]
    if operands.in_axis is None:
        set_operands(rewriter, node, scale_channels(weights, operands.out_axis, _depthwise(node, factors)))
    else:
        set_operands(rewriter, node, scale_elements(weights, _input_factors(node, factors)))


def _depthwise(node: Node, factors: np.ndarray) -> np.ndarray:
    """For each output channel of a depthwise node."""
    channels = node.inputs[0].shape[-1]
    return np.repeat(np.tile(factors, channels // factors.size), node.inputs[1].shape[3] // channels)


def _input_factors(node: Node, factors: np.ndarray) -> np.ndarray:
    """Factors of a linear node's input channels, so that they broadcast against its weights."""
    operands = LINEAR[node.op]
    weights = node.inputs[operands.weights]
    out, depth = weights.shape[operands.out_axis], weights.shape[operands.in_axis]
    if node.op == "FULLY_CONNECTED":
        return np.tile(factors, depth // factors.size)
    channels = node.inputs[operands.x].shape[-1]
    grouped = np.tile(factors, channels // factors.size).reshape(-1, depth)
    matrix = np.repeat(grouped, out // len(grouped), axis=0)
    kernel = tuple(range(1, len(weights.shape) - 1))
    return np.moveaxis(np.expand_dims(matrix, kernel), (0, -1), (operands.out_axis, operands.in_axis))


def _observe(graph: Graph, tensors: Sequence[Tensor], batches: Sequence[Batch]) -> dict[Tensor, ChannelStatistics]:
    if not tensors:
        return {}
    largest = {t: np.zeros(t.shape[-1]) for t in tensors}
    squares = {t: np.zeros(t.shape[-1]) for t in tensors}
    rows = dict.fromkeys(tensors, 0)
    execution = Execution(graph, tensors)
    for batch in batches:
        for tensor, array in zip(tensors, execution(batch), strict=True):
            flat = array.reshape(-1, array.shape[-1])
            largest[tensor] = np.maximum(largest[tensor], np.abs(flat).max(axis=0, initial=0))
            squares[tensor] += np.square(flat, dtype=np.float64).sum(axis=0)
            rows[tensor] += len(flat)
    return {t: ChannelStatistics(largest[t], squares[t] / max(rows[t], 1)) for t in tensors}


def _factors(
    readers: Sequence[_Reader], statistics: ChannelStatistics, clip: float, steps: int
) -> tuple[np.ndarray, float]:
    """The factors with the least expected noise, the largest of them 1, and the gain in dB. steps: of activations."""
    columns = np.max([reader.columns for reader in readers], axis=0)
    factors = np.ones(columns.size)
    before = least = _noise(readers, statistics, factors, steps)
    for share in SHARES:
        candidate = _spared(_balanced(statistics.largest, columns, share, clip), readers)
        noise = _noise(readers, statistics, candidate, steps)
        if noise < least:
            least, factors = noise, candidate
    return factors, 10 * float(np.log10(before / least)) if before > 0 else 0.0


def _balanced(ranges: np.ndarray, columns: np.ndarray, share: float, clip: float) -> np.ndarray:
    used = (ranges > 0) & (columns > 0)
    if not used.any():
        return np.ones(ranges.size)
    factors = np.ones(ranges.size)
    factors[used] = ranges[used] ** share / columns[used] ** (1 - share)
    factors[used] = np.maximum(factors[used] / factors[used].max(), SMALLEST)
    return np.minimum(np.maximum(factors, HEADROOM * ranges / clip), 1.0) if np.isfinite(clip) else factors


def _spared(factors: np.ndarray, readers: Sequence[_Reader]) -> np.ndarray:
    """Factors nearer to 1 where that adds little noise."""
    weight = np.sum([reader.weight @ reader.power for reader in readers], axis=0)
    share = SPARED * (weight * factors**2).sum() / factors.size
    added = np.divide(share, weight, out=np.ones_like(weight), where=weight > share)
    return np.minimum(np.sqrt(factors**2 + added), 1.0)


@dataclass(frozen=True)
class _Reader:
    """A node's weights by output channel and channel of the path.

    power: sum of squares. peak: largest magnitude. count: of weights that are not zero. columns: of each channel of the
    path, its largest weight relative to the largest of the output channel; 1 in a depthwise node, where a scale serves
    it. weight: of noise in each output channel.
    """

    power: np.ndarray
    peak: np.ndarray
    count: np.ndarray
    columns: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, node: Node, channels: int, statistics: ChannelStatistics, weight: np.ndarray | None) -> _Reader:
        """weight: None where nothing is known of what becomes of the output: all of it counts alike."""
        operands = LINEAR[node.op]
        weights = np.asarray(node.inputs[operands.weights].value, np.float64)
        if operands.in_axis is None:
            taps = np.moveaxis(weights, 3, 0).reshape(weights.shape[3], 1, -1)
            inputs = np.arange(weights.shape[3]) // (weights.shape[3] // node.inputs[0].shape[-1]) % channels
            inputs = inputs[:, np.newaxis]
        else:

            def by_channels(array: np.ndarray) -> np.ndarray:
                """(out, in, taps)"""
                moved = np.moveaxis(array, (operands.out_axis, operands.in_axis), (0, 1))
                return moved.reshape(*moved.shape[:2], -1)

            taps = by_channels(weights)
            inputs = np.broadcast_to(_input_factors(node, np.arange(channels)), weights.shape)
            inputs = by_channels(inputs)[:, :, 0]
        power, peak, count = (np.zeros((len(taps), channels)) for _ in range(3))
        rows = np.arange(len(taps))[:, np.newaxis]
        np.add.at(power, (rows, inputs), (taps**2).sum(axis=2))
        np.maximum.at(peak, (rows, inputs), np.abs(taps).max(axis=2))
        np.add.at(count, (rows, inputs), (taps != 0).sum(axis=2))
        largest = peak.max(axis=1, keepdims=True)
        relative = np.divide(peak, largest, out=np.zeros_like(peak), where=largest > 0)
        if weight is None:
            signal = float((power @ statistics.square).sum())
            weight = np.full(len(taps), 1 / signal if signal > 0 else 0.0)
        return cls(power, peak, count, relative.max(axis=0), weight)


def _noise(readers: Sequence[_Reader], statistics: ChannelStatistics, factors: np.ndarray, steps: int) -> float:
    """Expected noise of the readers' outputs, weighed.

    Rounding numbers to a step makes noise of step^2 / 12, taken to be independent for activations and weights.
    """
    step = np.max(statistics.largest / factors) / steps
    total = 0.0
    for reader in readers:
        weight_step = (reader.peak * factors).max(axis=1) / WEIGHT_STEPS
        noise = step**2 * (reader.power @ factors**2)
        noise += weight_step**2 * (reader.count @ (statistics.square / factors**2))
        total += float(reader.weight @ noise)
    return total
