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
        several = bool(input_shape) and isinstance(input_shape[0], (list, tuple))
        if not self.layer.built:
            with keras.name_scope(self.layer.name):
                self._strategy.build_layer(self.layer, input_shape)
                self.layer.built = True
        for follower in (self.batch_norm, self.activation):
            if follower is not None and not follower.built:
                follower.build(self._strategy.result_shape(self.layer, input_shape))
                follower.built = True
        self._build(list(input_shape) if several else [input_shape])
        self.built = True

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
        return self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False, name=name)

    @tf.autograph.experimental.do_not_convert
    def call(self, inputs: Any, training: Any = None, mask: Any = None, **arguments: Any) -> Any:
        if mask is not None:
            arguments["mask"] = mask
        return self._run(inputs, training, arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return self.layer.compute_mask(inputs, mask)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config(keras.saving.serialize_keras_object)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**cls._arguments(config, keras.saving.deserialize_keras_object))
