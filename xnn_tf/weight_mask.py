"""Holds zeros in a weight through training, whatever optimizer updates it.

The mask is a constraint of the variable. Both Kerases apply a variable's constraint inside the train function after
each update (after momentum, weight decay, moving-average overwrites, and within the loss-scale optimizer's branch), so
zeros hold in every step of an execution, compiled by XLA or not.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.keras_compat import (
    constraint_of,
    float32_values,
    moving_average_of,
    set_constraint,
    tensorflow_variable,
    variable_scope,
)
from xnn_tf.kernels import Kernel

_KEEP = "_xnn_keep"


class MaskConstraint:
    """Sets the masked weights of a variable to zero, after the constraint that the variable had."""

    def __init__(self, keep: Any, inner: Callable | None) -> None:
        self.keep = keep
        self.inner = inner

    def __call__(self, weight: Any) -> Any:
        return masked(weight if self.inner is None else self.inner(weight), self.keep)


def masked(weight: Any, keep: Any) -> Any:
    """The weight with +0.0 where `keep` is False. (A product would leave -0.0, and NaN where a weight overflowed.)"""
    import tensorflow as tf

    weight = tf.convert_to_tensor(weight)
    return tf.where(keep, weight, tf.zeros((), weight.dtype))


class WeightMask:
    """The mask of one kernel while it trains.

    Attributes:
        kernel: whose it is.
        zeros: how many weights are masked.
        size: how many weights there are.
    """

    def __init__(self, kernel: Kernel, model: Any) -> None:
        """Attaches a mask that keeps everything.

        Raises:
            InputError: another callback masks this kernel.
        """
        self.kernel = kernel
        self.zeros = 0
        self.size = math.prod(kernel.layout.shape)
        self._inner = constraint_of(kernel.variable)
        if isinstance(self._inner, MaskConstraint):
            raise InputError(
                f"{kernel.name} is already pruned by another PruneCallback: exclude it from one, or finish() one first"
            )
        self.keep = _keep_variable(kernel, model)
        self._constraint = MaskConstraint(self.keep, self._inner)
        set_constraint(kernel.variable, self._constraint)

    def values(self) -> np.ndarray:
        """The kernel as float32."""
        return float32_values(self.kernel.variable)

    def set_zeros(self, zeros: np.ndarray) -> None:
        """Masks exactly these weights from now on. They become zero with the next `hold` or update."""
        self.keep.assign(~zeros)
        self.zeros = int(np.count_nonzero(zeros))

    def detach(self) -> None:
        """Gives the variable back the constraint that it had. Functions traced with the mask no longer hold zeros."""
        self.keep.assign(np.ones(self.kernel.layout.shape, bool))
        if constraint_of(self.kernel.variable) is self._constraint:
            set_constraint(self.kernel.variable, self._inner)


def _keep_variable(kernel: Kernel, model: Any) -> Any:
    """The bool variable of a kernel's mask, all True.

    It lives as long as the kernel, since a train step that was traced with it may be called long after the mask is
    detached.
    """
    import tensorflow as tf

    owner = tensorflow_variable(kernel.variable)
    if not hasattr(owner, _KEEP):
        with variable_scope(model):
            setattr(owner, _KEEP, tf.Variable(np.ones(kernel.layout.shape, bool), trainable=False, name="keep"))
    return getattr(owner, _KEEP)


class MaskHolder:
    """Sets masked weights, and their moving averages in an optimizer, to zero now, in one compiled call."""

    def __init__(self, masks: Sequence[WeightMask]) -> None:
        self._masks = masks
        self._targets = 0
        self._hold: Callable[[], None] | None = None

    def __call__(self, optimizer: Any) -> None:
        """Does it.

        Args:
            optimizer: whose moving averages to mask as well, or None.
        """
        pairs = []
        for mask in self._masks:
            average = moving_average_of(optimizer, mask.kernel.variable)
            for variable in (mask.kernel.variable, average):
                if variable is not None:
                    pairs.append((tensorflow_variable(variable), mask.keep))
        if self._hold is None or self._targets != len(pairs):  # moving averages come with the optimizer's first update
            self._targets = len(pairs)
            self._hold = self._compile(pairs)
        self._hold()

    @staticmethod
    def _compile(pairs: list[tuple[Any, Any]]) -> Callable[[], None]:
        import tensorflow as tf

        @tf.function(autograph=False)
        def hold() -> None:
            for variable, keep in pairs:
                variable.assign(masked(variable, keep))

        return hold
