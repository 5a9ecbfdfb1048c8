"""One kernel on its way from dense float weights to few levels, most of them zero, and the bytes that it will take."""

from typing import Any

import numpy as np

from xnn_tf.keras_compat import variable_scope
from xnn_tf.kernels import Kernel
from xnn_tf.projected_weight import Projection
from xnn_tf.pruning_pattern import smallest
from xnn_tf.weight_mask import WeightMask

_CANDIDATES = 24
_ROUNDS = 8


def fit_step(magnitudes: np.ndarray, levels: int, start: float | None = None) -> float:
    """The step of the grid step, 2·step, … levels·step that is nearest to positive numbers, in least squares.

    Rounding and the best step for what was rounded alternate (Lloyd 1982), from several starts unless one is given.
    """
    if magnitudes.size == 0:
        return 0.0 if start is None else start
    mean, largest = float(magnitudes.mean()), float(magnitudes.max())
    starts = np.linspace(0.5 * mean / levels, largest / levels, _CANDIDATES) if start is None else [start]
    found = [_refined(magnitudes, levels, float(step)) for step in starts if step > 0]
    return min(found)[1] if found else 0.0


def _refined(magnitudes: np.ndarray, levels: int, step: float) -> tuple[float, float]:
    """(squared error, step)."""
    for _ in range(_ROUNDS):
        whole = np.clip(np.rint(magnitudes / step), 1, levels)
        step = float(np.dot(whole, magnitudes) / np.dot(whole, whole))
    whole = np.clip(np.rint(magnitudes / step), 1, levels)
    return float(np.square(whole * step - magnitudes).sum()), step


def entropy_bits(counts: np.ndarray) -> float:
    """Bits that symbols of these counts take together, by their zero-order entropy."""
    counts = counts[counts > 0].astype(np.float64)
    return float(-(counts * np.log2(counts / counts.sum())).sum())


class RatedKernel:
    """Prunes and quantizes one kernel while it trains.

    The optimizer moves a shadow (`xnn_tf.projected_weight`); the weight is the shadow pulled towards the nearest level
    of the grid by a share that grows from 0 to 1, so that no step of the training changes the network much.

    Attributes:
        kernel: whose it is.
        levels: how many there are on each side of zero.
        mask: what holds the zeros.
        share: how far weights are pulled to their level.
        bits_per_weight: of those that are not zero: their level and sign, by the last `measure`.
    """

    def __init__(self, kernel: Kernel, model: Any, levels: int) -> None:
        import tensorflow as tf

        self.kernel, self.levels = kernel, levels
        self.share = 0.0
        self.bits_per_weight = np.log2(2.0 * levels)
        self._fitted: float | None = None
        self.mask = WeightMask(kernel, model, "RateCallback")
        placing = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        with variable_scope(model):
            self._step = tf.Variable(1.0, name="step", **placing)
            self._pull = tf.Variable(0.0, name="pull", **placing)
        try:
            self.projection = Projection(kernel.variable, model, self._project)
        except Exception:
            self.mask.detach()
            raise

    @property
    def done(self) -> bool:
        """Whether every weight has the value of a level."""
        return self.share >= 1

    @property
    def step(self) -> float:
        """The distance between levels."""
        return float(self._step.numpy())

    def begin(self) -> None:
        """Takes the zeros that the kernel has for pruned; they stay."""
        zeros = self.mask.values() == 0
        self.mask.set_zeros(zeros & ~zeros.all())
        self.projection.restart()

    def prune(self, shadow: np.ndarray, count: int) -> bool:
        """Masks the `count` smallest weights, where that is more than there are. Returns whether anything changed."""
        if count <= self.mask.zeros:
            return False
        self.mask.set_zeros(smallest(np.abs(shadow), count))
        return True

    def pull(self, shadow: np.ndarray, share: float) -> None:
        """Fits the grid to the weights that are not masked, and pulls them towards it."""
        kept = np.abs(shadow[shadow != 0])
        self._fitted = fit_step(kept, self.levels, self._fitted)
        self._step.assign(self._fitted or 1.0)
        self._pull.assign(share)
        self.share = share

    def measure(self, shadow: np.ndarray) -> None:
        """Finds `bits_per_weight`, on the present grid or one that fits."""
        kept = shadow[shadow != 0]
        step = self._step_for(kept)
        if kept.size and step > 0:
            counts = np.bincount((self._whole(kept, step) + self.levels).astype(np.int64))
            self.bits_per_weight = entropy_bits(counts) / kept.size

    def on_grid(self, shadow: np.ndarray) -> np.ndarray:
        """The weights as they will be: zeros, and levels of the present grid or one that fits."""
        kept = shadow != 0
        step = self._step_for(shadow[kept])
        levels = shadow.copy()
        if step > 0:
            levels[kept] = self._whole(shadow[kept], step) * step
        return levels

    def _step_for(self, kept: np.ndarray) -> float:
        return self._fitted or fit_step(np.abs(kept), self.levels)

    def _whole(self, kept: np.ndarray, step: float) -> np.ndarray:
        return np.clip(np.rint(np.abs(kept) / step), 1, self.levels) * np.sign(kept)

    def bytes_at(self, zeros: int) -> float:
        """About what the file spends on the kernel with so many zeros: positions and values by their entropy."""
        kept = self.mask.size - zeros
        return (entropy_bits(np.array([zeros, kept])) + kept * self.bits_per_weight) / 8

    def settle(self) -> None:
        """Leaves the kernel on its grid at the end, whatever was assigned to it: a moving average, say."""
        if self.done:
            self.projection.apply()

    def detach(self) -> None:
        """Takes everything off, and leaves the values."""
        self.projection.detach()
        self.mask.detach()

    def _project(self, shadow: Any) -> Any:
        import tensorflow as tf

        step, pull = tf.cast(self._step, shadow.dtype), tf.cast(self._pull, shadow.dtype)
        whole = tf.clip_by_value(tf.round(tf.abs(shadow) / step), 1, self.levels)
        level = tf.sign(shadow) * whole * step  # 0 stays 0
        # With a pull of 1 exactly the level: a sum would leave the shadow's last bits in it.
        return tf.where(pull < 1, shadow + pull * (level - shadow), level)
