"""One kernel on its way from weights that are all different to few shared values."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from xnn_tf.clustering import codebook, nearest
from xnn_tf.keras_compat import float32_values, variable_scope
from xnn_tf.kernels import Kernel
from xnn_tf.projected_weight import Projection
from xnn_tf.weight_mask import WeightMask

MOST_KEPT = 256
"""A kernel with more distinct values than that is not taken for clustered."""
_FREE, _NEAREST, _FIXED = 0, 1, 2
_SPARE = np.float32(1e30)  # what is in no use: nearest to no weight


def distinct(weights: np.ndarray) -> int:
    """How many different values there are, zero aside."""
    return int(np.unique(weights[weights != 0]).size)


class ClusteredKernel:
    """Shares the values of one kernel while it trains.

    Each weight has a shadow that the optimizer moves (`xnn_tf.projected_weight`). A value is the mean of its members'
    shadows, taken anew after each update. So an update moves it by the mean of what the optimizer does to its members,
    which with SGD is the learning rate times the sum of their gradients, divided by their number: the gradient of a
    shared value is that sum (Han et al. 2016, arXiv:1510.00149), and the division keeps steps of large and small
    clusters alike. At first each weight belongs to the value nearest to its shadow (one pass of Lloyd's algorithm after
    each update), so that weights change clusters as they learn; at the end of the schedule they stay in theirs, and
    only the values train.

    Attributes:
        kernel: whose it is.
        clusters: the most values other than zero; None keeps the values that there are.
        sharing: whether it has begun.
    """

    def __init__(self, kernel: Kernel, model: Any, clusters: int | None, init: str) -> None:
        import tensorflow as tf

        self.kernel, self.clusters = kernel, clusters
        self.sharing = False
        self._init = init
        self._fixed = False
        self.projection = Projection(kernel.variable, model, self._project)  # refuses a second one
        self._mask = WeightMask(kernel, model, "ClusterCallback")
        slots = MOST_KEPT if clusters is None else clusters
        placing = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        with variable_scope(model):
            self._phase = tf.Variable(_FREE, name="phase", **placing)
            self._values = tf.Variable(tf.zeros(slots), name="codebook", **placing)
            self._members = tf.Variable(tf.zeros(kernel.layout.shape, tf.int32), name="members", **placing)

    @property
    def done(self) -> bool:
        """Whether values are shared, which they are from the schedule's beginning on; or there is nothing to share."""
        return self.sharing or self.clusters is None

    def values(self) -> np.ndarray:
        """The shared values, float32; some may have no members."""
        values = self._values.numpy()
        return values[values != _SPARE]

    def begin(self) -> None:
        """Takes zeros that the kernel has for pruned, and few values for clustered; both stay."""
        weights = float32_values(self.kernel.variable)
        zeros = weights == 0
        self._mask.set_zeros(zeros & ~zeros.all())
        self.projection.restart()
        kept = MOST_KEPT if self.clusters is None else self.clusters
        if distinct(weights) <= min(kept, max(1, int(np.count_nonzero(weights)) // 2)) and not zeros.all():
            self._share(weights, kept)
            if self.clusters is None:
                self._fix()

    def move(self, position: float) -> bool:
        """Begins to share values, and at position 1 keeps each weight with its value from then on."""
        if self.clusters is None:
            return False
        before = self.sharing, self._fixed
        if not self.sharing:
            self._share(self._mask.values(), self.clusters)
        if position >= 1:
            self._fix()
        return before != (self.sharing, self._fixed)

    def settle(self) -> None:
        """Leaves the kernel with shared values at the end, though a moving average, say, was assigned to it."""
        weights = float32_values(self.kernel.variable)
        values = np.unique(self.values())
        if self.sharing and distinct(weights) > values.size:
            shared = np.where(weights == 0, 0, values[nearest(weights, values)])
            self.kernel.variable.assign(shared.astype(self.kernel.variable.numpy().dtype))

    def detach(self) -> None:
        """Takes everything off, and leaves the shared values."""
        self.projection.detach()
        self._mask.detach()

    def _share(self, weights: np.ndarray, clusters: int) -> None:
        found = codebook(weights, clusters, self._init)
        if not found.size:  # nothing but zeros so far
            return
        spare = np.full(self._values.shape[0] - found.size, _SPARE)
        self._values.assign(np.concatenate([found, spare]))
        self._phase.assign(_NEAREST)
        self.sharing = True

    def _fix(self) -> None:
        if self.sharing and not self._fixed:
            self._members.assign(nearest(self._mask.values(), self._values.numpy()))
            self._phase.assign(_FIXED)
            self._fixed = True

    def _project(self, shadow: Any) -> Any:
        """Shared values for a shadow; and takes the values anew."""
        import tensorflow as tf

        shared, values = _sharing()(tf.cast(shadow, tf.float32), self._members, self._values, self._phase)
        self._values.assign(values)  # by all replicas alike, outside of any branch
        return tf.cast(shared, shadow.dtype)


@cache
def _sharing() -> Callable[..., tuple[Any, Any]]:
    """(shadow, members, values, phase) -> (shared weights, new values), compiled by XLA.

    Step by step, TensorFlow's kernels for it took about ten times as long.
    """
    import tensorflow as tf

    @tf.function(jit_compile=True, autograph=False)
    def sharing(shadow: Any, members: Any, values: Any, phase: Any) -> tuple[Any, Any]:
        weights = tf.reshape(shadow, [-1])

        def by_distance() -> Any:
            return tf.searchsorted((values[1:] + values[:-1]) / 2, weights)

        members = tf.cond(tf.equal(phase, _FIXED), lambda: tf.reshape(members, [-1]), by_distance)
        live = tf.cast(tf.not_equal(weights, 0), tf.float32)
        slots = values.shape[0]
        counts = tf.math.unsorted_segment_sum(live, members, slots)
        means = tf.math.divide_no_nan(tf.math.unsorted_segment_sum(weights, members, slots), counts)
        moved = tf.where((counts > 0) & (phase != _FREE), means, values)  # a value without members stays
        shared = tf.where(live > 0, tf.gather(moved, members), 0.0)
        return tf.where(tf.equal(phase, _FREE), shadow, tf.reshape(shared, shadow.shape)), moved

    return lambda *tensors: sharing(*map(tf.convert_to_tensor, tensors))
