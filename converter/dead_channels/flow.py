"""What is known of the channels of a graph's tensors while it is walked through, front to back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from schema.graph import Graph, Node, Tensor


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels of a tensor: their axis (of all axes), their numbers, and the constants that they are everywhere.

    values: float64, NaN where a channel is no constant.
    """

    axis: int
    ids: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Reader:
    """A linear op that sums over channels. added: what channels that are taken out (bool) add to its results."""

    node: Node
    ids: np.ndarray
    added: Callable[[np.ndarray], np.ndarray]


class Flow:
    """Channel numbers by tensor; which numbers are one (a channel that is added to another goes with it); which must
    stay; and the constants that hold a slice for each channel.
    """

    def __init__(self, graph: Graph) -> None:
        self._makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
        self._parents: list[int] = []
        self._needed: list[np.ndarray] = []
        self._computed: list[np.ndarray] = []
        self.channels: dict[Tensor, Channels] = {}
        self.slices: dict[Tensor, dict[int, np.ndarray]] = {}
        self.readers: list[Reader] = []
        self.shapes: list[tuple[Node, int, int, np.ndarray]] = []
        """(node, input that holds its result's shape, axis of the channels in it, their numbers)."""

    def new(self, count: int) -> np.ndarray:
        """Numbers of channels."""
        first = len(self._parents)
        self._parents.extend(range(first, first + count))
        return np.arange(first, first + count)

    def need(self, ids: np.ndarray) -> None:
        """These channels stay."""
        self._needed.append(np.asarray(ids))

    def computes(self, ids: np.ndarray) -> None:
        """These channels are computed by slices of weights."""
        self._computed.append(ids)

    def unite(self, a: np.ndarray, b: np.ndarray) -> None:
        """Each channel of `a` goes with its counterpart of `b` alone."""
        for first, second in zip(a.tolist(), b.tolist(), strict=True):
            first, second = self._root(first), self._root(second)
            if first != second:
                self._parents[max(first, second)] = min(first, second)

    def tie(self, constant: Tensor, axis: int, ids: np.ndarray) -> np.ndarray:
        """A constant's axis has a slice for each of these channels. Returns their numbers."""
        axes = self.slices.setdefault(constant, {})
        if axis in axes:
            self.unite(axes[axis], ids)
        else:
            axes[axis] = ids
        return axes[axis]

    def results_of(self, weights: Tensor, axis: int) -> np.ndarray:
        """Numbers of what a weight's slices along an axis compute, the same wherever it is used."""
        axes = self.slices.setdefault(weights, {})
        if axis not in axes:
            assert weights.shape is not None and weights.shape[axis] is not None
            axes[axis] = self.new(int(weights.shape[axis] or 0))
            self.computes(axes[axis])
        return axes[axis]

    def maker(self, tensor: Tensor | None) -> Node | None:
        """The node that computes a tensor."""
        return None if tensor is None else self._makers.get(tensor)

    def of(self, tensor: Tensor | None) -> Channels | None:
        return None if tensor is None else self.channels.get(tensor)

    def set(self, tensor: Tensor, axis: int, ids: np.ndarray, values: np.ndarray | None = None) -> None:
        """Says what a node's result has."""
        given = np.full(len(ids), np.nan) if values is None else np.asarray(values, np.float64)
        self.channels[tensor] = Channels(axis, ids, given)

    def opaque(self, node: Node) -> None:
        """The node may do anything with the channels that it reads; nothing is known of those of its results."""
        for tensor in node.inputs:
            channels = self.of(tensor)
            if channels is not None:
                self.need(channels.ids)
            if tensor is not None and tensor.is_constant:
                self.slices.setdefault(tensor, {})[-1] = np.zeros(0, np.int64)  # it stays as it is

    def kept(self) -> np.ndarray:
        """Which numbers stay: bool by number. Of each constant's axis, one at least."""
        roots = np.array([self._root(number) for number in range(len(self._parents))], np.int64)
        keep = np.ones(len(roots), bool)
        for ids in self._computed:
            keep[roots[ids]] = False
        for ids in self._needed:
            keep[roots[ids]] = True
        for axes in self.slices.values():
            for ids in axes.values():
                if -1 in axes:
                    keep[roots[ids]] = True
                if len(ids) and not keep[roots[ids]].any():
                    keep[roots[ids[0]]] = True
        return keep[roots]

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number


class Affine:
    """Sums over channels (taps, inputs, outputs) on constants.

    reads: bool (inputs, outputs), where any tap is not zero. uniform: each result sees all taps, so that a constant
    gives the same everywhere.
    """

    def __init__(self, kernel: np.ndarray, values: np.ndarray, uniform: bool) -> None:
        kernel = kernel.astype(np.float64)
        self.reads, self._sums = (kernel != 0).any(axis=0), kernel.sum(axis=0)
        self._usable = (values == 0) | (np.isfinite(values) & uniform)
        self._values = np.where(self._usable, np.nan_to_num(values), 0.0)

    def results(self, bias: np.ndarray) -> np.ndarray:
        """Constants (outputs,), NaN for those that are none."""
        out = self._values @ self._sums + bias
        out[(self.reads & ~self._usable[:, None]).any(axis=0)] = np.nan
        return out

    def live(self) -> np.ndarray:
        """Inputs that cannot be replaced by a number added to the results."""
        return self.reads.any(axis=1) & ~self._usable

    def added(self, removed: np.ndarray) -> np.ndarray:
        return np.where(removed, self._values, 0.0) @ self._sums


def all_of(flow: Flow, tensors: Sequence[Tensor | None]) -> list[Channels] | None:
    """The channels of all these tensors, None where those of one are not known."""
    found = [flow.of(tensor) for tensor in tensors]
    return None if any(channels is None for channels in found) else [c for c in found if c is not None]
