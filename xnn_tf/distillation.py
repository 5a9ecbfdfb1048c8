"""Training a model on what another one answers, inside `model.fit`."""

import warnings
from collections.abc import Callable
from typing import Any

from schema.errors import InputError
from xnn_tf import loss_parts, train_function
from xnn_tf.callback import Callback, Logs
from xnn_tf.keras_compat import replicas, require_tensorflow_keras
from xnn_tf.model_outputs import OutputKind, output_kinds

_SMALLEST = 1e-7  # of a probability whose logarithm is taken

Divergence = Callable[[Any, Any], Any]
"""(the teacher's output, the student's) -> how far they are apart: a number for each sample, or for each position."""


class DistillCallback(Callback):
    """Makes the model that is being trained answer as another one does (Hinton, Vinyals, Dean 2015, arXiv:1503.02531).

        model.fit(x, y, epochs=10, callbacks=[xnn_tf.DistillCallback(teacher), xnn_tf.PruneCallback(0.9)])

    While the model trains, its loss is `(1 - weight) · loss + weight · T² · KL(teacher ‖ student)`, where `loss` is
    what it was compiled with (regularization included) and both sides are softened by the temperature T. For outputs
    that are no classes, the divergence is that of single probabilities, or the mean squared error. The teacher is run
    forward once a step, without training, on the inputs that the student gets, augmented or not. Evaluation and
    validation keep the loss that they had.

    The model is not wrapped: other callbacks reach its kernels, and it saves, reloads and exports as before. It may be
    of Keras 3 (on TensorFlow) or of tf_keras, and so may the teacher; of mixed precision, compiled by XLA, distributed.

    In a custom training loop, add `distill.loss(x, y_pred)` to the loss that the loop computes.
    """

    def __init__(
        self,
        teacher: Any,
        *,
        temperature: float = 2.0,
        weight: float = 0.7,
        divergence: Divergence | None = None,
    ) -> None:
        """Sets whom to imitate, and how much.

        Args:
            teacher: a model, or another callable, from the student's inputs to outputs of its structure and shapes.
            temperature: T; the higher, the more the small probabilities count. Above 0.
            weight: share of the teacher in the loss, from 0 (none) to 1 (nothing else).
            divergence: another measure; None chooses by what the student's outputs are.

        Raises:
            InputError: an argument is of no use.
        """
        super().__init__()
        if not callable(teacher):
            raise InputError(f"teacher={teacher!r} cannot be called: pass the model to learn from")
        if not float(temperature) > 0:
            raise InputError(f"temperature={temperature!r}: give a number above 0")
        if not 0 <= float(weight) <= 1:
            raise InputError(f"weight={weight!r}: give the teacher's share of the loss, from 0 to 1")
        self.teacher = teacher
        self.temperature = float(temperature)
        self.weight = float(weight)
        self._divergence = divergence
        self._kinds: list[OutputKind] | None = None
        self._attached = False
        self._warned = False
        self._model_set_at = 0
        self.attached_at = 0

    def loss(self, x: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """T² · KL(teacher ‖ student), the mean over the batch: a scalar float32 tensor.

        Args:
            x: the batch of inputs.
            y_pred: the student's outputs for it.
            sample_weight: of shape (batch,), or one such for each output, or None.

        Raises:
            InputError: the teacher's outputs do not have the student's structure or shapes.
        """
        import tensorflow as tf

        try:
            answers = self.teacher(x, training=False)
        except TypeError:  # a function of the inputs alone
            answers = self.teacher(x)
        wanted, given = tf.nest.flatten(answers), tf.nest.flatten(y_pred)
        if len(wanted) != len(given):
            raise InputError(f"the teacher has {len(wanted)} outputs, the student {len(given)}")
        weights = [None] if sample_weight is None else tf.nest.flatten(sample_weight)
        weights = weights * len(given) if len(weights) == 1 else weights
        total = tf.zeros((), tf.float32)
        for index, (answer, output) in enumerate(zip(wanted, given, strict=True)):
            answer = tf.stop_gradient(tf.convert_to_tensor(answer))
            output = tf.convert_to_tensor(output)
            if not answer.shape.is_compatible_with(output.shape):
                raise InputError(f"output {index}: the teacher's is {answer.shape}, the student's {output.shape}")
            apart = self._measure(index)(tf.cast(answer, tf.float32), tf.cast(output, tf.float32))
            if weights[index] is not None:
                apart *= tf.reshape(tf.cast(weights[index], tf.float32), [-1] + [1] * (len(apart.shape) - 1))
            total += tf.reduce_mean(apart)
        return total

    def _measure(self, index: int) -> Divergence:
        if self._divergence is not None:
            return self._divergence
        if self._kinds is None:
            self._kinds = output_kinds(self.teacher if self.model is None else self.model)
        kind = self._kinds[index] if index < len(self._kinds) else self._kinds[0]
        return {
            "logits": self._classes,
            "probabilities": lambda p, q: self._classes(_logarithm(p), _logarithm(q)),
            "binary logits": self._binary,
            "binary probabilities": lambda p, q: self._binary(_log_odds(p), _log_odds(q)),
            "values": _squared_error,
        }[kind]

    def _classes(self, wanted: Any, given: Any) -> Any:
        """T² · KL of two softmax distributions over the last axis."""
        import tensorflow as tf

        wanted, given = wanted / self.temperature, given / self.temperature
        log_p, log_q = tf.nn.log_softmax(wanted), tf.nn.log_softmax(given)
        return self.temperature**2 * tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)

    def _binary(self, wanted: Any, given: Any) -> Any:
        """T² · KL of single probabilities, the mean over the last axis."""
        import tensorflow as tf

        wanted, given = wanted / self.temperature, given / self.temperature
        p = tf.sigmoid(wanted)
        between = tf.nn.sigmoid_cross_entropy_with_logits(p, given) - tf.nn.sigmoid_cross_entropy_with_logits(p, wanted)
        return self.temperature**2 * tf.reduce_mean(between, axis=-1)

    # What `fit` calls.

    def set_model(self, model: Any) -> None:
        require_tensorflow_keras(model)
        if model is self.teacher:
            raise InputError("the teacher is the model that is being trained: give a copy of it, or another model")
        if model is not self.model:
            self.release()
            self._kinds = None
        self._model_set_at = train_function.moment()
        super().set_model(model)

    def on_train_begin(self, logs: Logs = None) -> None:
        train_function.release_abandoned(self.model, before=self._model_set_at)
        self.release()
        self.attached_at = train_function.moment()
        self._attached = True
        loss_parts.attach(self.model, self._mix, first=True)
        train_function.observe(self.model, self)

    def after_execution(self, logs: Any) -> Any:
        """Warns once where there is no distilling."""
        if not self._warned and not loss_parts.asked(self.model):
            self._warned = True
            warnings.warn(
                f"{self.model.name}.train_step does not call compute_loss, so there is no distilling: add "
                "DistillCallback.loss(x, y_pred) to its loss",
                stacklevel=2,
            )
        return logs

    def on_train_end(self, logs: Logs = None) -> None:
        self.release()

    def release(self) -> None:
        """Gives the model its own loss back."""
        if self._attached:
            self._attached = False
            loss_parts.detach(self.model, self._mix)
            train_function.leave(self.model, self)

    def _mix(self, loss: Any, x: Any, y_pred: Any, sample_weight: Any) -> Any:
        import tensorflow as tf

        apart = self.loss(x, y_pred, sample_weight) / replicas(self.model)
        return (1 - self.weight) * loss + tf.cast(self.weight * apart, loss.dtype)


def _logarithm(probabilities: Any) -> Any:
    """Logits of a softmax, but for a number added to all, which makes no difference."""
    import tensorflow as tf

    return tf.math.log(tf.maximum(probabilities, _SMALLEST))


def _log_odds(probabilities: Any) -> Any:
    import tensorflow as tf

    p = tf.clip_by_value(probabilities, _SMALLEST, 1 - _SMALLEST)
    return tf.math.log(p) - tf.math.log1p(-p)


def _squared_error(wanted: Any, given: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_mean(tf.square(wanted - given), axis=-1)
