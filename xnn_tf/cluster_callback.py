"""Weight sharing inside `model.fit`: few values for many weights."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

from schema.errors import InputError
from xnn_tf import train_function
from xnn_tf.clustered_kernel import MOST_KEPT, ClusteredKernel
from xnn_tf.clustering import start_of
from xnn_tf.constraint_chain import chain_of
from xnn_tf.kernel_callback import KernelCallback
from xnn_tf.kernels import Kernel
from xnn_tf.layer_patterns import Patterns, first_match
from xnn_tf.pruning_schedule import Point, pruning_schedule


class ClusterCallback(KernelCallback):
    """Makes the weights of each kernel share a few values while the model trains, and trains those values.

        model.fit(x, y, epochs=5, callbacks=[xnn_tf.ClusterCallback(clusters=16)])

    From `begin` on, each kernel has at most `clusters` different values besides zero. The gradient of a value is the
    sum over its members, the optimizer's own rule is kept (`xnn_tf.clustered_kernel`). Until `end`, weights go to the
    value that is nearest to what they have learned; after it they stay where they are, and the values train on. The
    converter stores an index for each weight and the values once; a folded BatchNorm does not spread them.

    Zeros stay zeros, those that a kernel has at the start and those of a `PruneCallback` in the same `fit`. They do not
    count among the values: a pruned kernel of 16 clusters has 17 different numbers.

    The model is not wrapped, and saves, reloads and exports as before. The share of weights that are shared is in the
    logs as `clustered`. A kernel that has few enough values at the start keeps them: training that goes on
    (`initial_epoch`, `BackupAndRestore`, another `fit` with this callback) begins with them.
    `ClusterCallback(clusters=None)` keeps the values of what is clustered already, and leaves the rest alone.

    Put it before a callback that chooses weights at the end (`EarlyStopping(restore_best_weights=True)`), and let that
    one begin to choose after `begin`.

    In a custom training loop:

        cluster = xnn_tf.ClusterCallback(16)
        cluster.start(model, total_steps=epochs * steps_per_epoch)
        for x, y in batches:
            train_step(x, y)  # an optimizer's update, or any other, compiled or not
            cluster.step()
        cluster.finish()
    """

    LOG_NAME = "clustered"
    DOES = "clustered"

    def __init__(
        self,
        clusters: int | None = 16,
        *,
        init: str = "kmeans++",
        begin: Point = 0.0,
        end: Point = 0.75,
        include: Patterns | None = None,
        exclude: Patterns | None = None,
        per_layer: Mapping[str, int | None] | None = None,
    ) -> None:
        """Sets how many values, and when.

        Args:
            clusters: the most values of a kernel, zero aside: 1 to 256. None keeps those that there are.
            init: how k-means begins: "kmeans++", "linear" (evenly between the extremes) or "density" (as many weights
                to each value).
            begin: when sharing begins: a whole number is a step (batch, counted from epoch 0), a fraction from 0.0 to
                1.0 the share of the planned training (`epochs`).
            end: from when on weights keep to their value, likewise.
            include: layer-name patterns of what to cluster; see `xnn_tf.layer_patterns`. None means every trainable
                Conv and Dense kernel. Depthwise, recurrent, embedding and frozen kernels are clustered only when a
                pattern asks for them.
            exclude: layer-name patterns of what not to cluster.
            per_layer: numbers for single layers, by layer-name pattern; the first that matches counts. 0 leaves a
                kernel alone, None keeps its values. A pattern for a layer that is not clustered otherwise asks for it.

        Raises:
            InputError: an argument is of no use; the message names it.
        """
        self._clusters = None if clusters is None else _count(clusters, "clusters", least=1)
        start_of(init)
        self._init = init
        numbers_by_layer = _counts(per_layer or {})
        waits = clusters is not None or any(numbers_by_layer.values())
        ramp = pruning_schedule("cubic" if waits else "constant", begin if waits else 0, end, None, 0.5)
        super().__init__(ramp, include, exclude, numbers_by_layer)

    def _reset(self) -> None:
        super()._reset()
        self._apply: Callable[[], None] | None = None
        self._parts: list[Any] = []

    @property
    def clustered(self) -> float:
        """Share of weights, of the kernels that are being clustered on this model, whose values are shared by now."""
        callbacks = [other for other in train_function.observers(self.model) if isinstance(other, ClusterCallback)]
        held = [held for callback in callbacks or [self] for held in callback._held]
        sizes = [math.prod(each.kernel.layout.shape) for each in held]
        return sum(size for size, each in zip(sizes, held, strict=True) if each.sharing) / max(1, sum(sizes))

    def _attach_to(self, kernel: Kernel) -> ClusteredKernel | None:
        clusters = first_match(kernel, self._per_layer, self._clusters)
        if clusters == 0:
            return None
        return ClusteredKernel(kernel, self.model, clusters, self._init)

    def _hold(self) -> None:
        """Projects every kernel in one compiled call."""
        import tensorflow as tf

        chains = [chain_of(held.kernel.variable) for held in self._held]
        parts = [part for chain in chains if chain is not None for part in chain.parts]
        if self._apply is None or parts != self._parts:  # other callbacks have come or gone
            projections = [held.projection for held in self._held]

            @tf.function(autograph=False)
            def apply() -> None:
                for projection in projections:
                    projection.apply()

            self._apply, self._parts = apply, parts
        if any(held.sharing for held in self._held):
            self._apply()

    def _settle(self) -> None:
        for held in self._held:
            held.settle()

    def _measure(self) -> float:
        return self.clustered

    def _unfinished(self) -> str:
        return (
            f"training ended at step {self._clock.step}, before weights were to be shared: the kernels are as they were"
        )


def _count(value: Any, argument: str, least: int) -> int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and least <= int(value) <= MOST_KEPT:
        return int(value)
    raise InputError(f"{argument}={value!r}: give a whole number of values from {least} to {MOST_KEPT}")


def _counts(per_layer: Any) -> dict[str, int | None]:
    if not isinstance(per_layer, Mapping) or not all(isinstance(pattern, str) for pattern in per_layer):
        raise InputError(f"per_layer={per_layer!r}: give a dict of layer-name patterns and their numbers of values")
    return {
        pattern: None if value is None else _count(value, f"per_layer[{pattern!r}]", least=0)
        for pattern, value in per_layer.items()
    }
