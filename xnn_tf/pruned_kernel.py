"""One kernel on its way from dense to its target sparsity."""

import numpy as np

from xnn_tf.kernels import Kernel
from xnn_tf.pruning_pattern import PruningPattern
from xnn_tf.weight_mask import WeightMask


class PrunedKernel:
    """Chooses the zeros of one kernel, by magnitude, as its schedule goes on. Zeros never come back to life.

    Attributes:
        mask: what holds them.
        target: share of zeros at the end; None keeps the zeros that there are.
    """

    def __init__(self, mask: WeightMask, pattern: PruningPattern, initial: float, target: float | None) -> None:
        self.mask = mask
        self.target = target
        self._initial = initial if target is None else min(initial, target)
        self._pattern = pattern
        self._units = 0

    @property
    def kernel(self) -> Kernel:
        """Whose it is."""
        return self.mask.kernel

    @property
    def done(self) -> bool:
        """Whether the target is reached."""
        return self.target is None or self._units >= self._units_at(self.target)

    def begin(self) -> None:
        """Takes the zeros that the kernel has for pruned, if they are no more than its target.

        A kernel of nothing but zeros was initialised so, and is not pruned.
        """
        weight = self.mask.values()
        if self.target is None:
            zeros = weight == 0
            self.mask.set_zeros(zeros & ~zeros.all())
            return
        present = self._pattern.zero_units(weight, self.mask.kernel.layout)
        if present <= self._units_at(self.target):
            self._prune(weight, present)

    def move(self, position: float) -> bool:
        """Prunes as many units as a position of the schedule asks for, in [0, 1].

        Returns:
            Whether the mask changed.
        """
        if self.target is None:
            return False
        share = self.target if position >= 1 else self._initial + (self.target - self._initial) * position
        units = self._units_at(share)
        if units <= self._units:
            return False
        self._prune(self.mask.values(), units)
        return True

    def detach(self) -> None:
        """Takes the mask off, and leaves the zeros."""
        self.mask.detach()

    def _units_at(self, sparsity: float) -> int:
        return round(self._pattern.unit_sparsity(sparsity) * self._pattern.units(self.mask.kernel.layout))

    def _prune(self, weight: np.ndarray, units: int) -> None:
        self._units = units
        self.mask.set_zeros(self._pattern.zeros(weight, self.mask.kernel.layout, units))
