"""The straight-through estimator without wrapping a layer: a weight that always has allowed values, and trains.

The model's variable holds v = Q(s), and the optimizer updates it as if it were the hidden shadow s: what an update adds
to v is added to s, and the variable becomes Q(s) again (BinaryConnect, Courbariaux et al. 2015, arXiv:1511.00363). So
steps much smaller than the distance between allowed values add up. What is kept is the residual r = s − v alone, since
the variable has v: after an update to `new`, s = r + new. So an assignment from outside moves the shadow likewise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xnn_tf.constraint_chain import Part, attach_projection, chain_of, detach
from xnn_tf.keras_compat import Variable, tensorflow_variable, variable_scope

Project = Callable[[Any], Any]
"""Maps a shadow (float32 tensor, or float64 for such weights) to allowed values of the same shape and type.

It runs inside the train function after each update, may read and assign `tf.Variable`s (a codebook, a step size), and
must give its own results back unchanged. Masked weights of the shadow are 0.0; to them the masks give zeros whatever it
returns.
"""


class Projection:
    """Makes a variable take allowed values only, from the next update or `apply` on.

        projection = Projection(layer.kernel, model, lambda s: step * tf.round(s / step))
        ...  # train: any optimizer, fit or custom loop, XLA, mixed precision, distributed
        projection.detach()  # the allowed values stay

    The shadow lives as long as this object and is in no checkpoint: training that goes on later starts it at the
    weight's present values, which are allowed ones.

    Attributes:
        variable: whose it is.
        project: the map Q. Another one counts in functions that are traced from then on; `tf.Variable`s that it reads
            may change at any time.
        residual: `tf.Variable` of what the shadow has beyond the variable.
    """

    def __init__(self, variable: Variable, model: Any, project: Project) -> None:
        """Attaches it.

        Args:
            variable: a weight of either Keras.
            model: whose distribution strategy places the shadow.
            project: see `Project`.

        Raises:
            InputError: the variable has a projection already.
        """
        import tensorflow as tf

        self.variable, self.project = variable, project
        attach_projection(variable, self)
        owner = tensorflow_variable(variable)
        self._dtype = tf.float64 if owner.dtype == tf.float64 else tf.float32
        # In a replica's context every replica assigns the same.
        placing = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        with variable_scope(model):
            self.residual = tf.Variable(tf.zeros(owner.shape, self._dtype), name="residual", **placing)
            self._active = tf.Variable(True, name="active", **placing)

    def shadow(self) -> np.ndarray:
        """The shadow's values, float32 or float64."""
        return self.variable.numpy().astype(self._dtype.as_numpy_dtype) + self.residual.numpy()

    def restart(self) -> None:
        """Starts the shadow at the variable's present values: after weights were brought back, for instance."""
        import tensorflow as tf

        self.residual.assign(tf.zeros_like(self.residual))

    def detach(self) -> None:
        """Ends it, in functions traced with it too. The variable keeps its values, and is free."""
        self._active.assign(False)
        detach(self.variable, self)

    def update(self, weight: Any, restrict: Part, hold: Part) -> Any:
        """The allowed weight after an update; see `xnn_tf.constraint_chain.UpdateProjection`."""
        import tensorflow as tf

        weight = tf.convert_to_tensor(weight)
        shadow = restrict(self.residual + tf.cast(weight, self._dtype))
        allowed = tf.cast(hold(self.project(shadow)), weight.dtype)
        residual = shadow - tf.cast(allowed, self._dtype)
        self.residual.assign(tf.where(self._active, residual, tf.zeros((), self._dtype)))
        return tf.where(self._active, allowed, restrict(weight))

    def apply(self) -> None:
        """Gives the variable its allowed values now: before the first update, or after one that does not know of it."""
        chain = chain_of(self.variable)
        if chain is not None:
            self.variable.assign(chain(self.variable))
