"""Where zeros may lie: single weights, blocks of outputs × inputs, or two of each four inputs.

A pattern divides a kernel into units, prunes whole units, and chooses those whose removal takes the least energy (sum
of squares) out of the kernel: magnitude pruning (Han et al. 2015, arXiv:1506.02626). Equal energies go by position, so
equal weights always give equal masks.
"""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.kernel_layout import KernelLayout


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Marks exactly `count` smallest values, the first ones among equals; NaN counts as the largest.

    Args:
        values: float array of any shape.
        count: between 0 and `values.size`.

    Returns:
        bool array of the same shape.
    """
    if count <= 0:
        return np.zeros(values.shape, bool)
    if count >= values.size:
        return np.ones(values.shape, bool)
    flat = values.ravel()
    limit = np.partition(flat, count - 1)[count - 1]
    marked = flat < limit
    ties = np.flatnonzero(flat == limit)
    marked[ties[: count - np.count_nonzero(marked)]] = True
    return marked.reshape(values.shape)


class PruningPattern(ABC):
    """The units that are pruned as a whole."""

    @abstractmethod
    def units(self, layout: KernelLayout) -> int:
        """Into how many units a kernel divides."""

    @abstractmethod
    def zero_units(self, weight: np.ndarray, layout: KernelLayout) -> int:
        """How many units of a kernel are pruned already."""

    @abstractmethod
    def zeros(self, weight: np.ndarray, layout: KernelLayout, count: int) -> np.ndarray:
        """Which weights become zero when `count` units are pruned.

        Args:
            weight: float array of the layout's shape.
            layout: the axes of the weight.
            count: between 0 and `units(layout)`.

        Returns:
            bool array of the weight's shape, True where the weight becomes zero.
        """

    def unit_sparsity(self, sparsity: float) -> float:
        """The share of units that is pruned at a given sparsity."""
        return sparsity

    def check_target(self, target: float, argument: str) -> None:  # noqa: B027 (most patterns can)
        """Raises InputError where this pattern cannot give a target sparsity."""

    def check_kernel(self, name: str, layout: KernelLayout) -> None:  # noqa: B027 (most patterns do)
        """Raises InputError where this pattern does not fit a kernel."""


class ElementPattern(PruningPattern):
    """Each weight by itself."""

    def units(self, layout: KernelLayout) -> int:
        return int(np.prod(layout.shape))

    def zero_units(self, weight: np.ndarray, layout: KernelLayout) -> int:
        return weight.size - int(np.count_nonzero(weight))

    def zeros(self, weight: np.ndarray, layout: KernelLayout, count: int) -> np.ndarray:
        return smallest(np.abs(weight), count)


class BlockPattern(PruningPattern):
    """Blocks of outputs × inputs: rectangles of the matrix (outputs, inputs), at each spatial tap of a convolution.

    Blocks at the ends may be cut short; they are padded with zeros and count as blocks.
    """

    def __init__(self, outputs: int, inputs: int) -> None:
        self.outputs, self.inputs = outputs, inputs

    def units(self, layout: KernelLayout) -> int:
        positions, outputs, inputs = layout.view_shape
        return positions * -(-outputs // self.outputs) * -(-inputs // self.inputs)

    def _sums(self, view: np.ndarray) -> np.ndarray:
        """Sums over blocks: (positions, blocks of outputs, blocks of inputs)."""
        _, outputs, inputs = view.shape
        by_input = np.add.reduceat(view, np.arange(0, inputs, self.inputs), axis=2)
        return np.add.reduceat(by_input, np.arange(0, outputs, self.outputs), axis=1)

    def zero_units(self, weight: np.ndarray, layout: KernelLayout) -> int:
        weights_left = self._sums((layout.to_view(weight) != 0).astype(np.int64))
        return int(np.count_nonzero(weights_left == 0))

    def zeros(self, weight: np.ndarray, layout: KernelLayout, count: int) -> np.ndarray:
        blocks = smallest(self._sums(np.square(layout.to_view(weight))), count)
        _, outputs, inputs = layout.view_shape
        view = blocks.repeat(self.outputs, axis=1)[:, :outputs].repeat(self.inputs, axis=2)[:, :, :inputs]
        return layout.from_view(view)


class TwoOfFourPattern(PruningPattern):
    """At most two weights other than zero in each four consecutive inputs of an output, at each spatial tap.

    The pattern of sparse matrix units (Mishra et al. 2021, arXiv:2104.08378). Inputs are padded with zeros to a
    multiple of four, so a tail of three loses one weight and shorter tails none. The units are the groups of four: on
    the way, some groups hold two zeros and others none yet.
    """

    GROUP = 4
    ZEROS = 2
    SPARSITY = ZEROS / GROUP

    def units(self, layout: KernelLayout) -> int:
        positions, outputs, inputs = layout.view_shape
        return positions * outputs * -(-inputs // self.GROUP)

    def unit_sparsity(self, sparsity: float) -> float:
        return min(1.0, sparsity / self.SPARSITY)

    def _groups(self, weight: np.ndarray, layout: KernelLayout) -> np.ndarray:
        """Magnitudes as (positions, outputs, groups, 4), -1 where padded."""
        view = np.abs(layout.to_view(weight))
        view = np.pad(view, ((0, 0), (0, 0), (0, -view.shape[2] % self.GROUP)), constant_values=-1)
        return view.reshape(*view.shape[:2], -1, self.GROUP)

    def zero_units(self, weight: np.ndarray, layout: KernelLayout) -> int:
        return int(np.count_nonzero(np.count_nonzero(self._groups(weight, layout) <= 0, axis=-1) >= self.ZEROS))

    def zeros(self, weight: np.ndarray, layout: KernelLayout, count: int) -> np.ndarray:
        groups = self._groups(weight, layout)
        weakest = np.argsort(groups, axis=-1, kind="stable")[..., : self.ZEROS]
        lost = np.square(np.maximum(np.take_along_axis(groups, weakest, axis=-1), 0)).sum(axis=-1)
        pruned = np.zeros(groups.shape, bool)
        np.put_along_axis(pruned, weakest, smallest(lost, count)[..., np.newaxis], axis=-1)
        positions, outputs, inputs = layout.view_shape
        return layout.from_view(pruned.reshape(positions, outputs, -1)[:, :, :inputs])

    def check_target(self, target: float, argument: str) -> None:
        if target != self.SPARSITY:
            raise InputError(f'{argument}={target}: pattern "2:4" makes half of the weights zero, so the target is 0.5')

    def check_kernel(self, name: str, layout: KernelLayout) -> None:
        if layout.view_shape[2] == 1:
            raise InputError(
                f'{name}: pattern "2:4" needs several inputs per output, and this kernel has one: exclude the layer'
            )


def pruning_pattern(pattern: str | Sequence[int]) -> PruningPattern:
    """Reads the `pattern` argument: `"element"`, `"2:4"`, or a block `(outputs, inputs)`.

    Raises:
        InputError: it is none of these.
    """
    if pattern == "element":
        return ElementPattern()
    if pattern == "2:4":
        return TwoOfFourPattern()
    if isinstance(pattern, (tuple, list)) and len(pattern) == 2 and all(map(_is_size, pattern)):
        return BlockPattern(int(pattern[0]), int(pattern[1]))
    raise InputError(
        f'unknown pattern {pattern!r}: give "element", "2:4", or a block (outputs, inputs) of whole numbers from 1'
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0
