"""BatchNorm behind a linear layer: by the batch's statistics while training, folded outside of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact, Products, accumulated
from xnn_tf.quantization.settings import Settings


def factor_and_offset(layer: Any) -> tuple[Any, Any]:
    """BatchNorm by its moving averages: y = factor * x + offset, (channels,)."""
    variance = tf.convert_to_tensor(layer.moving_variance)
    # Not rsqrt, whose last bit TensorFlow and the converter do not agree on.
    factor = 1 / tf.sqrt(variance + layer.epsilon)
    if layer.scale:
        factor = factor * tf.convert_to_tensor(layer.gamma)
    offset = -tf.convert_to_tensor(layer.moving_mean) * factor
    if layer.center:
        offset = offset + tf.convert_to_tensor(layer.beta)
    return factor, offset


def with_bias(result: Any, bias: Any, step: Any, training: bool, products: Products | None) -> tuple[Any, Exact | None]:
    """A linear layer's result with its bias, and what the engine gives in its place where activations are int16.

    result: float32 sums of products. bias: variable or None. step: of the accumulators, None where it is unknown.
    products: None where activations are not int16.
    """
    y = accumulated(result, bias, None if products is not None else step, training)
    return y, None if products is None else replace(products, bias=bias).requantized


class Normalization:
    """Of the result of a linear layer. Counts training steps where it is to freeze."""

    def __init__(self, wrapper: Any, settings: Settings):
        self._layer = wrapper.batch_norm
        self._freeze = settings.freeze_batch_norm
        self._steps = wrapper.add_counter("steps") if self._freeze else None

    def __call__(
        self, result: Any, bias: Any, step: Any, training: bool, products: Products | None
    ) -> tuple[Any, Exact | None]:
        """As `with_bias`. What is normalized by the batch is as it is."""
        factor, offset = factor_and_offset(self._layer)
        if bias is not None:
            offset = offset + tf.convert_to_tensor(bias) * factor

        def by_batch() -> Any:
            return self._layer(result if bias is None else result + tf.convert_to_tensor(bias), training=True)

        def folded() -> Any:
            return accumulated(result, offset, None if products is not None else step, training, factor)

        exact = None if products is None else replace(products, bias=offset, factor=factor).requantized
        if not training or not self._layer.trainable or self._freeze == 0:
            return folded(), exact
        if self._steps is None:
            return by_batch(), None
        done = tf.convert_to_tensor(self._steps)
        self._steps.assign(done + 1)
        y = tf.cond(done < self._freeze, by_batch, folded)
        if exact is None:
            return y, None
        return y, lambda scale: tf.cond(done < self._freeze, lambda: y, lambda: exact(scale))
