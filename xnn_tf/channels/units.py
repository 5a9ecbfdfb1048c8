"""Which channels of tensors and which slices of weights are one neuron: union–find over channel numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from xnn_tf.keras_compat import Variable


class Role(Enum):
    """What a slice of a weight does for its neuron.

    COLUMN computes it, ROW reads it, CHANNEL is per channel on the way (bias, BatchNorm's gamma and beta, depthwise
    kernels), STATE goes with it without being a reason for its value (moving averages, slopes).
    """

    COLUMN = "column"
    ROW = "row"
    CHANNEL = "channel"
    STATE = "state"


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels of a tensor: they lie along one axis (the batch is axis 0), and each has a number."""

    axis: int
    ids: np.ndarray


@dataclass(eq=False)
class WeightAxes:
    """One weight, and the channel numbers along some of its axes.

    Attributes:
        variable: the variable of its Keras.
        layer: its layer's path in the model.
        name: its name in the layer.
        axes: channel numbers by axis.
        roles: what each of these axes does.
        is_kernel: whether it multiplies (and counts for magnitudes), unlike biases and BatchNorm's numbers.
    """

    variable: Variable
    layer: str
    name: str
    is_kernel: bool
    axes: dict[int, np.ndarray] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.variable.shape)


class Links:
    """Collects what belongs together while a model is walked through."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._fixed: list[tuple[np.ndarray, str]] = []
        self.weights: dict[int, WeightAxes] = {}
        self.misfit = False
        """Whether the layer that is looked at wants channels where its input has none."""

    def new(self, count: int) -> np.ndarray:
        """Numbers of so many new channels."""
        first = len(self._parents)
        self._parents.extend(range(first, first + count))
        return np.arange(first, first + count)

    def fixed(self, count: int, reason: str) -> np.ndarray:
        """Numbers of new channels that cannot be removed."""
        ids = self.new(count)
        self.fix(ids, reason)
        return ids

    def fix(self, ids: np.ndarray | Channels | None, reason: str) -> None:
        """Says that these channels cannot be removed, and why."""
        if ids is not None:
            self._fixed.append((ids.ids if isinstance(ids, Channels) else np.asarray(ids), reason))

    def unite(self, a: np.ndarray, b: np.ndarray) -> None:
        """Makes each channel of `a` one with its counterpart in `b`; equal shapes."""
        for first, second in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            self._unite(first, second)

    def unite_along(self, ids: np.ndarray, axis: int) -> np.ndarray:
        """Makes all that lie along an axis one; returns the numbers of the first."""
        first = ids.take(0, axis)
        for other in range(1, ids.shape[axis]):
            self.unite(first, ids.take(other, axis))
        return first

    def tie(
        self,
        variable: Variable | None,
        axis: int,
        ids: np.ndarray,
        role: Role,
        owner: tuple[str, str],
        is_kernel: bool = False,
    ) -> None:
        """Says that a weight's axis holds these channels. A weight that is used twice makes them one.

        Args:
            variable: None is passed over, for biases that a layer has not.
            axis: non-negative.
            ids: channel numbers, as many as the axis is long.
            role: what the slices do.
            owner: path of the layer, name of the weight.
            is_kernel: whether the weight multiplies activations.
        """
        if variable is None:
            return
        known = self.weights.setdefault(id(variable), WeightAxes(variable, *owner, is_kernel))
        if axis in known.axes:
            self.unite(known.axes[axis], ids)
        else:
            known.axes[axis], known.roles[axis] = ids, role

    def columns(self, variable: Any, axis: int, owner: tuple[str, str], count: int | None = None) -> np.ndarray:
        """The channels that a kernel computes: those it computed before where it is shared, else new ones."""
        known = self.weights.get(id(variable))
        if known is not None and axis in known.axes:
            return known.axes[axis]
        ids = self.new(int(variable.shape[axis]) if count is None else count)
        if count is None:
            self.tie(variable, axis, ids, Role.COLUMN, owner, is_kernel=True)
        return ids

    def roots(self) -> np.ndarray:
        """For each channel number, the number that stands for all that it is one with."""
        return np.array([self._root(number) for number in range(len(self._parents))], np.int64)

    def reasons(self, roots: np.ndarray) -> dict[int, str]:
        """Why channels are fixed, by root; the first reason that was given."""
        found: dict[int, str] = {}
        for ids, reason in self._fixed:
            for root in np.unique(roots[ids]).tolist():
                found.setdefault(root, reason)
        return found

    def _root(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def _unite(self, a: int, b: int) -> None:
        a, b = self._root(a), self._root(b)
        if a != b:
            self._parents[max(a, b)] = min(a, b)


def size_of(shape: Sequence[int | None], axis: int) -> int | None:
    """A dimension, None where it is unknown or there is no such axis."""
    return shape[axis] if -len(shape) <= axis < len(shape) else None
