"""QuantizeWrapper of tf_keras."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from xnn_tf.quantization.layers import PACKAGE
from xnn_tf.quantization.wrapper import WrapperBehaviour


@tf_keras.utils.register_keras_serializable(PACKAGE)
class QuantizeWrapper(WrapperBehaviour, tf_keras.layers.Layer):
    __doc__ = WrapperBehaviour.__doc__

    call = tf.autograph.experimental.do_not_convert(WrapperBehaviour.call)
    _scope = staticmethod(tf.name_scope)
    _serialize = staticmethod(tf_keras.layers.serialize)
    _deserialize = staticmethod(tf_keras.layers.deserialize)

    @staticmethod
    def _several(shape: Any) -> bool:
        return isinstance(shape, (list, tuple)) and not isinstance(shape, tf.TensorShape)

    def add_range_end(self, name: str, trainable: bool) -> Any:
        shared = {} if trainable else {"synchronization": tf.VariableSynchronization.ON_READ}
        return self.add_weight(
            name,
            shape=(),
            initializer=tf_keras.initializers.Constant(float("nan")),
            trainable=trainable,
            experimental_autocast=False,
            aggregation=tf.VariableAggregation.MEAN,
            **shared,
        )

    def add_steps(self, name: str, shape: list[int]) -> Any:
        return self.add_weight(name, shape=shape, initializer="zeros", trainable=True, experimental_autocast=False)

    def add_counter(self, name: str) -> Any:
        return self.add_weight(
            name,
            shape=(),
            initializer="zeros",
            dtype=tf.int32,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
