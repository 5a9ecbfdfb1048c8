"""QuantizeWrapper of Keras 3."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from xnn_tf.quantization.layers import PACKAGE
from xnn_tf.quantization.wrapper import WrapperBehaviour


@keras.saving.register_keras_serializable(PACKAGE)
class QuantizeWrapper(WrapperBehaviour, keras.layers.Layer):
    __doc__ = WrapperBehaviour.__doc__

    call = tf.autograph.experimental.do_not_convert(WrapperBehaviour.call)
    _scope = staticmethod(keras.name_scope)
    _serialize = staticmethod(keras.saving.serialize_keras_object)
    _deserialize = staticmethod(keras.saving.deserialize_keras_object)

    @staticmethod
    def _several(shape: Any) -> bool:
        return bool(shape) and isinstance(shape[0], (list, tuple))

    def add_range_end(self, name: str, trainable: bool) -> Any:
        return self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(float("nan")),
            trainable=trainable,
            autocast=False,
            aggregation="mean",
            name=name,
        )

    def add_steps(self, name: str, shape: list[int]) -> Any:
        return self.add_weight(shape=shape, initializer="zeros", trainable=True, autocast=False, name=name)

    def add_counter(self, name: str) -> Any:
        return self.add_weight(
            shape=(), initializer="zeros", dtype="int32", trainable=False, aggregation="only_first_replica", name=name
        )
