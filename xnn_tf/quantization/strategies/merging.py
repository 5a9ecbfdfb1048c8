"""Layers that join tensors: sums, products, concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact, by_short_multiplier, real, rescaled, whole, wide
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategy import Strategy, register_strategy

PAIRWISE = {"Add": lambda a, b: a + b, "Multiply": lambda a, b: a * b}
MOVING = ("Concatenate", "Maximum", "Minimum")


@register_strategy
class MergingStrategy(Strategy):
    """Rounds the result, behind the activation that is fused with it. Of more than two summands or factors each
    intermediate result is rounded as well. A concatenation of tensors that have one range has that range.
    """

    fuses = True

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        if type(wrapper.layer).__name__ in PAIRWISE:
            for index in range(len(shapes) - 2):
                self.add_range(wrapper, f"partial_{index}")
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        kind = type(layer).__name__
        activation = wrapper.activation or (lambda x: x)
        join = PAIRWISE.get(kind)
        if join is None or len(inputs) < 3:
            exact = _exact(kind, layer, inputs, sources, activation) if self.is_wide(sources) else None
            return self.output(activation(layer.call(inputs)), training, exact)
        y, source = inputs[0], sources[0]
        for index, x in enumerate(inputs[1:]):
            last = index == len(inputs) - 2
            name = "output" if last else f"partial_{index}"
            following = activation if last else (lambda x: x)
            both = [source, sources[index + 1]]
            exact = _exact(kind, layer, [y, x], both, following) if self.is_wide(both, name) else None
            y, source = self.ranges[name](following(join(y, x)), training, exact), self.ranges[name]
        return y


def _exact(kind: str, layer: Any, inputs: Sequence[Any], sources: Sequence[Any], activation: Any) -> Exact | None:
    """What the engine gives for int16 numbers, None where it is the result rounded once."""
    scales = [scale_of(source)[0] for source in sources]
    steps = [whole(x, scale) for x, scale in zip(inputs, scales, strict=True)]
    if kind in ("Add", "Subtract"):
        total = sum_of(inputs, sources, 1 if kind == "Add" else -1)
        return lambda scale: activation(total(scale))
    if kind == "Multiply":
        product = product_of(inputs, sources)
        return lambda scale: activation(product(scale))
    if kind in MOVING:
        return lambda scale: layer.call(
            [real(rescaled(x, wide(s) / wide(scale)), scale) for x, s in zip(steps, scales, strict=True)]
        )
    if kind == "Dot":
        unit = scales[0] * scales[1]
        return lambda scale: real(by_short_multiplier(whole(layer.call(inputs), unit), wide(unit) / wide(scale)), scale)
    return None


def sum_of(summands: Sequence[Any], sources: Sequence[Any], sign: int = 1) -> Exact:
    """a + b, or a - b, of int16 numbers (tensorflow/lite/kernels/add.cc): both in fine steps of one scale, for which
    they get 15 bits more. sources: their ranges.
    """
    scales = [scale_of(source)[0] for source in sources]
    twice = 2 * wide(tf.maximum(*scales))
    a, b = (rescaled(whole(x, scale) * 2.0**15, wide(scale) / twice) for x, scale in zip(summands, scales, strict=True))
    return lambda scale: real(rescaled(a + sign * b, twice / 2.0**15 / wide(scale)), scale)


def product_of(factors: Sequence[Any], sources: Sequence[Any]) -> Exact:
    """The product of two tensors of int16 numbers: FP32_ROUND_EVEN of schema.fixedpoint.requantize, with the product of
    integers, and the ratio, in float32. sources: their ranges.
    """
    (a, of_a), (b, of_b) = (
        (whole(x, scale_of(source)[0]), scale_of(source)[0]) for x, source in zip(factors, sources, strict=True)
    )
    product = tf.cast(a * b, tf.float32)
    return lambda scale: real(tf.round(product * (of_a * of_b / scale)), scale)
