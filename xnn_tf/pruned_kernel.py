"""One kernel on its way from dense to its target sparsity."""

import numpy as np

from xnn_tf.kernels import Kernel
from xnn_tf.pruned_neurons import HOLDER
from xnn_tf.pruning_pattern import PruningPattern
from xnn_tf.weight_mask import WeightMask, mask_of


class PrunedKernel:
    """Chooses the zeros of one kernel, by magnitude, as its schedule goes on. Zeros never come back to life.

    Shares are of the weights that are left once the neurons that a NeuronPruneCallback has pruned are taken out.

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
        self._gone = 0  # units of pruned neurons

    @property
    def kernel(self) -> Kernel:
        """Whose it is."""
        return self.mask.kernel

    @property
    def done(self) -> bool:
        """Whether the target is reached."""
        return self.target is None or self._units >= self._units_at(self.target, self._gone)

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
        if present <= self._units_at(self.target, self._zero_units(self._of_neurons())):
            self._prune(weight, present)

    def move(self, position: float) -> bool:
        """Prunes as many units as a position of the schedule asks for, in [0, 1].

        Returns:
            Whether the mask changed.
        """
        if self.target is None:
            return False
        share = self.target if position >= 1 else self._initial + (self.target - self._initial) * position
        of_neurons = self._of_neurons()
        self._gone = max(self._gone, self._zero_units(of_neurons))
        units = self._units_at(share, self._gone)
        if self._gone and self.mask.masked is not None:  # neurons may go that have fewer zeros than those that stay
            units = max(units, self._zero_units(of_neurons | self.mask.masked))
        if units <= self._units:
            return False
        self._prune(self.mask.values(), units)
        return True

    def detach(self) -> None:
        """Takes the mask off, and leaves the zeros."""
        self.mask.detach()

    @property
    def neurons(self) -> WeightMask | None:
        """The mask that holds pruned neurons at zero."""
        return mask_of(self.mask.kernel, HOLDER)

    def _of_neurons(self) -> np.ndarray:
        """Which weights are of pruned neurons."""
        masked = None if self.neurons is None else self.neurons.masked
        return np.zeros(self.mask.kernel.layout.shape, bool) if masked is None else masked

    def _zero_units(self, masked: np.ndarray) -> int:
        return self._pattern.zero_units((~masked).astype(np.float32), self.mask.kernel.layout) if masked.any() else 0

    def _units_at(self, sparsity: float, gone: int) -> int:
        """How many units are zero at that share of those that are not gone."""
        left = self._pattern.units(self.mask.kernel.layout) - gone
        return gone + round(self._pattern.unit_sparsity(sparsity) * left)

    def _prune(self, weight: np.ndarray, units: int) -> None:
        self._units = units
        self.mask.set_zeros(self._pattern.zeros(weight, self.mask.kernel.layout, units))
