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

    def __init__(
        self,
        layer: Any,
        strategy: Any,
        batch_norm: Any = None,
        activation: Any = None,
        quantize_inputs: list[bool] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._begin(layer, strategy, batch_norm, activation, quantize_inputs)

    def __call__(self, inputs: Any, *others: Any, **arguments: Any) -> Any:
        self._bind(inputs)
        return super().__call__(inputs, *others, **arguments)

    def build(self, input_shape: Any) -> None:
        several = isinstance(input_shape, (list, tuple)) and not isinstance(input_shape, tf.TensorShape)
        if not self.layer.built:
            with tf.name_scope(self.layer.name):
                self._strategy.build_layer(self.layer, input_shape)
                self.layer.built = True
        for follower in (self.batch_norm, self.activation):
            if follower is not None and not follower.built:
                with tf.name_scope(follower.name):
                    follower.build(self._strategy.result_shape(self.layer, input_shape))
                    follower.built = True
        self._build(list(input_shape) if several else [input_shape])
        self.built = True

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

    @tf.autograph.experimental.do_not_convert
    def call(self, inputs: Any, training: Any = None, mask: Any = None, **arguments: Any) -> Any:
        if mask is not None:
            arguments["mask"] = mask
        return self._run(inputs, training, arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return self.layer.compute_mask(inputs, mask)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config(tf_keras.layers.serialize)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**cls._arguments(config, tf_keras.layers.deserialize))
