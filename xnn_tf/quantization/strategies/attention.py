"""Multi-head attention: its projections, scores and their sums in integers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import fake_quantize
from xnn_tf.quantization.ranges import FixedRange
from xnn_tf.quantization.strategies.functions import range_of_function
from xnn_tf.quantization.strategies.products import joined, projected
from xnn_tf.quantization.strategies.weights_only import accepts
from xnn_tf.quantization.strategy import Strategy, register_strategy

RANGES = ("query", "key", "value", "scores", "context", "output")


@register_strategy
class AttentionStrategy(Strategy):
    """Rounds query, key and value behind their projections, scores before they are scaled, their softmax to the
    specification's range (while training too, since it is multiplied again), its products with the values, and the
    result. Behind a mask the softmax itself is computed in float32. The wrapper takes its tensors as a list.
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

        def rounded(name: str, x: Any) -> Any:
            return ranges[name](x, training)

        q = rounded("query", projected(wrapper, layer._query_dense, query, of_query, training))
        k = rounded("key", projected(wrapper, layer._key_dense, key, of_key, training))
        v = rounded("value", projected(wrapper, layer._value_dense, value, of_value, training))
        scores = joined(layer._dot_product_equation, k, q, (ranges["key"], ranges["query"]), training)
        scores = rounded("scores", scores) * (1.0 / float(layer._key_dim) ** 0.5)
        known = ranges["probabilities"]
        probabilities = _rounded(layer._masked_softmax(scores, mask), known)
        dropped = layer._dropout_layer(probabilities, training=training)
        context = joined(layer._combine_equation, dropped, v, (known, ranges["value"]), training)
        context, of_context = rounded("context", context), ranges["context"]
        if getattr(layer, "_use_gate", False):
            gate = rounded("before_gate", projected(wrapper, layer._gate_dense, query, of_query, training))
            gate = _rounded(layer._gate_dense.activation(gate), ranges["gate"])
            context, of_context = rounded("gated", context * gate), ranges["gated"]
        y = projected(wrapper, layer._output_dense, context, of_context, training)
        self._gives_scores = bool(arguments.get("return_attention_scores"))
        return (y, probabilities) if self._gives_scores else self.output(y, training)

    def output_range(self, sources: list[Any]) -> Any:
        """None where there are two results, which cannot have one range: what follows rounds the first."""
        return None if self._gives_scores else self.ranges["output"]


def _fixed(function: str, bits: int) -> FixedRange:
    found = range_of_function(function, bits)
    assert found is not None
    return found


def _rounded(x: Any, known: FixedRange) -> Any:
    """x in the range's steps, while training too."""
    low, high = known.ends()
    return fake_quantize(x, low, high, known.bits)


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

    It looks for them at the tensors in tf_keras, in its arguments in Keras 3.
    """
    compute = layer._compute_attention_mask
    given = {name: arguments.get(name) for name in ("attention_mask", "use_causal_mask")}
    given["use_causal_mask"] = bool(given["use_causal_mask"])
    masks = arguments.get("mask") or []
    if not accepts(layer, "query_mask"):
        for tensor, mask in zip((query, value, key), masks):  # noqa: B905
            if mask is not None:
                tensor._keras_mask = mask
        return compute(query, value, key=key, **given)
    names = ("query_mask", "value_mask", "key_mask")
    given.update({name: arguments.get(name) for name in names})
    given.update({name: mask for name, mask in zip(names, masks) if mask is not None})  # noqa: B905
    return compute(query, value, **given)
