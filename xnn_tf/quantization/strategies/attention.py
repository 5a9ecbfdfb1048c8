"""Multi-head attention: its projections, scores and their sums in integers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact, whole, wide
from xnn_tf.quantization.ranges import FixedRange, rounded, scale_of
from xnn_tf.quantization.strategies.functions import range_of_function
from xnn_tf.quantization.strategies.merging import product_of
from xnn_tf.quantization.strategies.products import joined, projected
from xnn_tf.quantization.strategies.weights_only import accepts
from xnn_tf.quantization.strategy import Strategy, register_strategy
from xnn_tf.quantization.tables import function_of

MASKED = -1e9
"""In the place of scores that do not count; Keras has it as well."""
RANGES = ("query", "key", "value", "scores", "context", "output")


@register_strategy
class AttentionStrategy(Strategy):
    """Rounds query, key and value behind their projections, scores before they are scaled and masked, their softmax to
    the specification's range (while training too, since it is multiplied again), its products with the values, and the
    result. The wrapper takes its tensors as a list.
    """

    def build_layer(self, layer: Any, shape: Any) -> None:
        if hasattr(layer, "_build_from_signature"):  # tf_keras
            layer._build_from_signature(*(tf.zeros([1, *[d or 1 for d in s[1:]]]) for s in shape))
            _build_projections(layer, *shape)
        else:
            layer.build(*shape)

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        for name in RANGES:
            self.add_range(wrapper, name)
        self.ranges["probabilities"] = _fixed("softmax", self.settings.activations)
        if getattr(wrapper.layer, "_use_gate", False):
            self.add_range(wrapper, "before_gate")
            self.add_range(wrapper, "gated")
            self.ranges["gate"] = _fixed("sigmoid", self.settings.activations)
        self._gives_scores = False

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer, ranges = wrapper.layer, self.ranges
        query, value, key = (*inputs, inputs[1])[:3]
        of_query, of_value, of_key = (*sources, sources[1])[:3]
        mask = _mask(layer, query, value, key, arguments)

        def project(name: str, dense: Any, x: Any, source: Any) -> Any:
            y, exact = projected(wrapper, dense, x, (source, ranges[name]), training)
            return ranges[name](y, training, exact)

        def join(name: str, equation: str, a: Any, b: Any, of: tuple[Any, Any]) -> Any:
            y, exact = joined(equation, a, b, (*of, ranges[name]), training)
            return ranges[name](y, training, exact)

        q = project("query", layer._query_dense, query, of_query)
        k = project("key", layer._key_dense, key, of_key)
        v = project("value", layer._value_dense, value, of_value)
        scores = join("scores", layer._dot_product_equation, k, q, (ranges["key"], ranges["query"]))
        known = ranges["probabilities"]
        self._gives_scores = bool(arguments.get("return_attention_scores"))
        probabilities = self._softmax(layer, scores, _expanded(layer, mask, scores))
        dropped = layer._dropout_layer(probabilities, training=training)
        context = join("context", layer._combine_equation, dropped, v, (known, ranges["value"]))
        of_context = ranges["context"]
        if getattr(layer, "_use_gate", False):
            context, of_context = self._gated(wrapper, query, of_query, context, training), ranges["gated"]
        y, exact = projected(wrapper, layer._output_dense, context, (of_context, ranges["output"]), training)
        return (y, probabilities) if self._gives_scores else self.output(y, training, exact)

    def _softmax(self, layer: Any, scores: Any, mask: Any) -> Any:
        """The rounded softmax of scaled scores that the mask lets in; where it lets in nothing, all count alike."""
        factor, exact = 1.0 / float(layer._key_dim) ** 0.5, None
        if self.settings.activations == 16 and len(layer._attention_axes) == 1:
            scale, _ = scale_of(self.ranges["scores"])
            unit = wide(scale) * wide(tf.constant(factor))
            exact = function_of("softmax", None, whole(scores, scale), unit, mask)
        scaled = scores * factor
        if mask is not None:
            scaled = tf.where(mask, scaled, MASKED)
        probabilities = _rounded(layer._softmax(scaled), self.ranges["probabilities"], exact)
        if mask is not None and _leaves_zeros(layer, self._gives_scores):
            probabilities = tf.where(mask, probabilities, 0.0)
        return probabilities

    def _gated(self, wrapper: Any, query: Any, of_query: Any, context: Any, training: bool) -> Any:
        layer, ranges = wrapper.layer, self.ranges
        before, known = ranges["before_gate"], ranges["gate"]
        y, exact = projected(wrapper, layer._gate_dense, query, (of_query, before), training)
        y, sigmoid, product = before(y, training, exact), None, None
        if self.settings.activations == 16:
            scale, _ = scale_of(before)
            sigmoid = function_of("sigmoid", None, whole(y, scale), scale)
        gate = _rounded(layer._gate_dense.activation(y), known, sigmoid)
        if self.settings.activations == 16:
            product = product_of([context, gate], [ranges["context"], known])
        return ranges["gated"](context * gate, training, product)

    def output_range(self, sources: list[Any]) -> Any:
        """None where there are two results, which cannot have one range: what follows rounds the first."""
        return None if self._gives_scores else self.ranges["output"]


def _fixed(function: str, bits: int) -> FixedRange:
    found = range_of_function(function, bits)
    assert found is not None
    return found


def _expanded(layer: Any, mask: Any, scores: Any) -> Any:
    """The mask as it broadcasts against scores, which have heads besides; None for none."""
    if mask is None:
        return None
    for _ in range(len(scores.shape) - len(mask.shape)):
        mask = tf.expand_dims(mask, -2 * len(layer._attention_axes) - 1)
    return tf.cast(mask, tf.bool)


def _leaves_zeros(layer: Any, gives_scores: bool) -> bool:
    """Whether the layer gives 0 where its mask lets in nothing: Keras 3 does, unless it computes the softmax together
    with the products.
    """
    return hasattr(layer, "_flash_attention") and (gives_scores or layer._dropout > 0 or len(layer._attention_axes) > 1)


def _rounded(x: Any, known: FixedRange, exact: Exact | None) -> Any:
    """x in the range's steps, while training too."""
    return rounded(x, *known.ends(), known.bits, True, exact)


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


def _mask(layer: Any, query: Any, value: Any, key: Any, arguments: dict[str, Any]) -> Any:
    """What the layer makes of the masks of its inputs and of those that it is given, None where nothing is masked.

    It looks for them at the tensors in tf_keras, in its arguments in Keras 3, which gives the wrapper none beside a
    tensor `attention_mask`.
    """
    compute = layer._compute_attention_mask
    given = {name: arguments.get(name) for name in ("attention_mask", "use_causal_mask")}
    given["use_causal_mask"] = bool(given["use_causal_mask"])
    masks = arguments.get("mask") or [getattr(tensor, "_keras_mask", None) for tensor in (query, value, key)]
    if not accepts(layer, "query_mask"):
        for tensor, mask in zip((query, value, key), masks):  # noqa: B905
            if mask is not None:
                tensor._keras_mask = mask
        return compute(query, value, key=key, **given)
    names = ("query_mask", "value_mask", "key_mask")
    given.update({name: arguments.get(name) for name in names})
    given.update({name: mask for name, mask in zip(names, masks) if mask is not None})  # noqa: B905
    return compute(query, value, **given)
