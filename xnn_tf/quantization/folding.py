"""BatchNorm behind a linear layer: by the batch's statistics while training, folded outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import round_bias
from xnn_tf.quantization.integers import accumulated
from xnn_tf.quantization.settings import Settings


def factor_and_offset(layer: Any) -> tuple[Any, Any]:
    """BatchNorm by its moving averages: y = factor * x + offset, (channels,)."""
    variance = tf.convert_to_tensor(layer.moving_variance)
    factor = tf.math.rsqrt(variance + layer.epsilon)
    if layer.scale:
        factor = factor * tf.convert_to_tensor(layer.gamma)
    offset = -tf.convert_to_tensor(layer.moving_mean) * factor
    if layer.center:
        offset = offset + tf.convert_to_tensor(layer.beta)
    return factor, offset


class Normalization:
    """Of the result of a linear layer. Counts training steps where it is to freeze."""

    def __init__(self, wrapper: Any, settings: Settings):
        self._layer = wrapper.batch_norm
        self._freeze = settings.freeze_batch_norm
        self._steps = wrapper.add_counter("steps") if self._freeze else None

    def __call__(
        self, with_bias: Callable[[], Any], without: Callable[[], Any], bias: Any, step: Any, training: bool
    ) -> Any:
        """with_bias, without: compute the layer. bias: its variable or None. step: of the accumulators or None."""

        def by_batch() -> Any:
            return self._layer(with_bias() if bias is not None else without(), training=True)

        def folded() -> Any:
            factor, offset = factor_and_offset(self._layer)
            if bias is not None:
                offset = offset + tf.convert_to_tensor(bias) * factor
            if not training and step is not None:
                return accumulated(without(), offset, step, training, factor)
            return without() * factor + (offset if step is None else round_bias(offset, step * tf.abs(factor)))

        if not training or not self._layer.trainable or self._freeze == 0:
            return folded()
        if self._steps is None:
            return by_batch()
        done = tf.convert_to_tensor(self._steps)
        self._steps.assign(done + 1)
        return tf.cond(done < self._freeze, by_batch, folded)
