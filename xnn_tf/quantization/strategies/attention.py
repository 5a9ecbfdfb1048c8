"""Multi-head attention: its projections are stored in few bits; scores and their sums are computed in float32."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.strategies.weights_only import accepts
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class AttentionStrategy(Strategy):
    """Rounds the kernels of query, key, value and output for each output channel. The wrapper takes them as a list."""

    integer_inputs = False

    def build_layer(self, layer: Any, shape: Any) -> None:
        if hasattr(layer, "_build_from_signature"):  # tf_keras
            layer._build_from_signature(*(tf.zeros([1, *[d or 1 for d in s[1:]]]) for s in shape))
            _build_projections(layer, *shape)
        else:
            layer.build(*shape)

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        swaps = [(kernel.variable, self.quantized(wrapper, kernel.variable)) for kernel in find_kernels(layer)]
        if accepts(layer, "training"):
            arguments["training"] = training
        arguments.update(_masks(layer, inputs, arguments.pop("mask", None)))
        with wrapper.swapped(swaps):
            return layer.call(*inputs, **arguments)

    def output_range(self, sources: list[Any]) -> None:
        return None


def _build_projections(layer: Any, query: Any, value: Any, key: Any = None) -> None:
    """Make the kernels of tf_keras, which come with the first call otherwise: after the wrapper looked for kernels."""
    heads = tf.TensorShape([*query[:-1], layer._num_heads, layer._value_dim])
    projections = (
        (layer._query_dense, query),
        (layer._key_dense, value if key is None else key),
        (layer._value_dense, value),
        (layer._output_dense, heads),
    )
    for projection, shape in projections:
        with tf.name_scope(projection.name):
            projection.build(shape)


def _masks(layer: Any, inputs: list[Any], masks: list[Any] | None) -> dict[str, Any]:
    """Masks of query, value and key where the layer looks for them: at the tensors, and in Keras 3 in arguments too,
    which are returned.
    """
    arguments = {}
    for name, tensor, mask in zip(("query_mask", "value_mask", "key_mask"), inputs, masks or []):  # noqa: B905
        if mask is not None:
            tensor._keras_mask = mask
            if accepts(layer, name):
                arguments[name] = mask
    return arguments
