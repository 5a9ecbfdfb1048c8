"""Holds zeros in a weight through training, whatever optimizer updates it.

The mask is a part of the variable's constraint (`xnn_tf.constraint_chain`), which both Kerases apply inside the train
function after each update.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.constraint_chain import attach, chain_of, detach
from xnn_tf.keras_compat import float32_values, moving_average_of, tensorflow_variable, variable_scope
from xnn_tf.kernels import Kernel
from xnn_tf.projected_weight import Projection


def masked(weight: Any, keep: Any) -> Any:
    """The weight with +0.0 where `keep` is False. (A product would leave -0.0, and NaN where a weight overflowed.)"""
    import tensorflow as tf

    weight = tf.convert_to_tensor(weight)
    return tf.where(keep, weight, tf.zeros((), weight.dtype))


class WeightMask:
    """The mask of one kernel while it trains: a part of its constraint.

    Attributes:
        kernel: whose it is.
        keep: `tf.Variable`, False where a weight is masked.
        holder: what masks it: the name of a callback.
        masked: bool array, True where a weight is masked; None before `set_zeros`.
        zeros: how many weights are masked.
        size: how many weights there are.
    """

    def __init__(self, kernel: Kernel, model: Any, holder: str = "PruneCallback") -> None:
        """Attaches a mask that keeps everything.

        Args:
            kernel: what to mask.
            model: whose distribution strategy places the mask.
            holder: masks of different holders may share a kernel.

        Raises:
            InputError: another callback of this holder's name masks this kernel.
        """
        self.kernel = kernel
        self.holder = holder
        self.masked: np.ndarray | None = None
        self.zeros = 0
        self.size = math.prod(kernel.layout.shape)
        if mask_of(kernel, holder) is not None:
            raise InputError(
                f"{kernel.name} is already pruned by another {holder}: exclude it from one, or finish() one first"
            )
        self.keep = _keep_variable(kernel, model, f"_xnn_keep_{holder}")
        attach(kernel.variable, self)

    def __call__(self, weight: Any) -> Any:
        return masked(weight, self.keep)

    def values(self) -> np.ndarray:
        """The kernel as float32: where it is projected to a few values, what hides behind them; zeros stay zero."""
        values = float32_values(self.kernel.variable)
        chain = chain_of(self.kernel.variable)
        if chain is not None and isinstance(chain.projection, Projection):
            return np.where(values == 0, values, chain.projection.shadow().astype(np.float32))
        return values

    def residual(self) -> Any:
        """The variable of what hides behind a projected kernel, or None: what is masked has nothing to come back as."""
        chain = chain_of(self.kernel.variable)
        return None if chain is None else getattr(chain.projection, "residual", None)

    def set_zeros(self, zeros: np.ndarray) -> None:
        """Masks exactly these weights from now on. They become zero with the next `hold` or update."""
        self.keep.assign(~zeros)
        self.masked, self.zeros = zeros, int(np.count_nonzero(zeros))

    def detach(self) -> None:
        """Takes the mask off. Functions traced with it no longer hold zeros."""
        self.keep.assign(np.ones(self.kernel.layout.shape, bool))
        detach(self.kernel.variable, self)


def mask_of(kernel: Kernel, holder: str) -> WeightMask | None:
    """The mask that this holder has on a kernel."""
    chain = chain_of(kernel.variable)
    masks = [part for part in (chain.parts if chain else ()) if isinstance(part, WeightMask)]
    return next((mask for mask in masks if mask.holder == holder), None)


def _keep_variable(kernel: Kernel, model: Any, attribute: str) -> Any:
    """The bool variable of a kernel's mask, all True.

    It lives as long as the kernel, since a train step that was traced with it may be called long after the mask is
    detached.
    """
    import tensorflow as tf

    owner = tensorflow_variable(kernel.variable)
    if not hasattr(owner, attribute):
        with variable_scope(model):
            setattr(owner, attribute, tf.Variable(np.ones(kernel.layout.shape, bool), trainable=False, name="keep"))
    return getattr(owner, attribute)


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
            for variable in (mask.kernel.variable, average, mask.residual()):
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
