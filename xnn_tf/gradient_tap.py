"""Listens to the gradients that an optimizer is given, inside the compiled train step."""

from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.channels import ChannelGroups
from xnn_tf.channels.units import Role
from xnn_tf.keras_compat import tensorflow_variable, variable_scope

DECAY = 0.9
"""Of the running mean over batches: about ten of them count."""


class GradientTap:
    """Accumulates (Σ gradient · weight)² of each neuron while an optimizer trains a model; of several replicas each for
    its part of the batch, and the mean counts.

    It puts itself before the optimizer's own method for applying gradients, which counts in steps that are traced from
    then on, and is gone with `close`.
    """

    def __init__(self, model: Any, groups: ChannelGroups) -> None:
        """Attaches it.

        Raises:
            InputError: the model has no optimizer.
        """
        import tensorflow as tf

        optimizer = getattr(model, "optimizer", None)
        if optimizer is None:
            raise InputError(
                f'criterion="taylor" needs gradients: compile {model.name} with the optimizer that trains it'
            )
        self._optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        self._method = "apply" if hasattr(self._optimizer, "apply") else "apply_gradients"
        self._sources = {
            _key(weight.variable): (axis, groups.unit_of[ids], groups.unit_count)
            for weight in groups.weights
            for axis, ids in weight.axes.items()
            if weight.roles[axis] is Role.COLUMN and weight.is_kernel
        }
        own = {"trainable": False, "synchronization": tf.VariableSynchronization.ON_READ}  # one in each replica
        with variable_scope(model):
            mean, first = tf.VariableAggregation.MEAN, tf.VariableAggregation.ONLY_FIRST_REPLICA
            self._mean = tf.Variable(np.zeros(groups.unit_count, np.float32), aggregation=mean, name="taylor", **own)
            self._batches = tf.Variable(0, aggregation=first, name="taylor_batches", **own)
        self._original = getattr(self._optimizer, self._method)
        object.__setattr__(self._optimizer, self._method, self._apply)

    @property
    def ready(self) -> bool:
        """Whether gradients have been seen."""
        return int(self._batches.numpy()) > 0

    def squares(self) -> np.ndarray:
        """The running mean of (Σ g·w)², float32 by neuron."""
        return self._mean.numpy()

    def close(self) -> None:
        """Gives the optimizer its method back. Functions traced with the tap go on accumulating, for nobody."""
        if vars(self._optimizer).get(self._method) == self._apply:  # not what somebody else has put there since
            vars(self._optimizer).pop(self._method)

    def _apply(self, gradients: Any, *arguments: Any, **named: Any) -> Any:
        if self._method == "apply_gradients":
            gradients = list(gradients)  # it may be a zip
            pairs = gradients
        else:
            variables = arguments[0] if arguments else named.get("trainable_variables")
            gradients = list(gradients)
            pairs = list(zip(gradients, self._optimizer._trainable_variables if variables is None else variables))  # noqa: B905
        self._listen(pairs)
        return self._original(gradients, *arguments, **named)

    def _listen(self, pairs: list[tuple[Any, Any]]) -> None:
        import tensorflow as tf

        total = tf.zeros(self._mean.shape)
        for gradient, variable in pairs:
            source = self._sources.get(_key(variable))
            if source is None or gradient is None:
                continue
            axis, units, count = source
            weight = tf.cast(tf.convert_to_tensor(tensorflow_variable(variable)), tf.float32)
            product = tf.cast(tf.convert_to_tensor(gradient), tf.float32) * weight
            sums = tf.reduce_sum(product, [other for other in range(len(weight.shape)) if other != axis])
            total += tf.math.unsorted_segment_sum(sums, tf.constant(units), count)
        self._mean.assign(DECAY * self._mean + (1 - DECAY) * tf.square(total))
        self._batches.assign_add(1)


def _key(variable: Any) -> int:
    """The same for a variable and for what either Keras wraps around it."""
    variable = tensorflow_variable(variable)
    return id(getattr(variable, "_variable", variable))
