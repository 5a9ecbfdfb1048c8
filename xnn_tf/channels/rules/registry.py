"""Which rule a layer has, by the class of Keras that it is of."""

from __future__ import annotations

from typing import Any

from xnn_tf.channels.rules import convolution, dense, merging, per_channel, recurrent, reshaping, spatial, wrappers
from xnn_tf.channels.rules.base import ELEMENTWISE_ACTIVATIONS, Rule, activation_name
from xnn_tf.channels.symbolic import calls_as_keras, keras_class


def _named(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_MERGES: dict[str, Rule] = {
    "Add": merging.Merge(lambda values: values.sum(axis=0)),
    "Subtract": merging.Merge(merging.difference),
    "Multiply": merging.Merge(merging.product),
    "Average": merging.Merge(lambda values: values.mean(axis=0)),
    "Maximum": merging.Merge(lambda values: values.max(axis=0)),
    "Minimum": merging.Merge(lambda values: values.min(axis=0)),
}
_LAYERS: dict[str, Rule] = {
    **_named("Conv1D Conv2D Conv3D", convolution.Convolution()),
    **_named("Conv1DTranspose Conv2DTranspose Conv3DTranspose", convolution.TransposedConvolution()),
    **_named("DepthwiseConv1D DepthwiseConv2D", convolution.DepthwiseConvolution()),
    **_named("SeparableConv1D SeparableConv2D", convolution.SeparableConvolution()),
    "Dense": dense.Dense(),
    "Embedding": dense.Embedding(),
    "PReLU": per_channel.PRelu(),
    **_named("ReLU LeakyReLU ELU ThresholdedReLU", per_channel.Elementwise()),
    **_named(
        """Dropout SpatialDropout1D SpatialDropout2D SpatialDropout3D GaussianDropout GaussianNoise AlphaDropout
        ActivityRegularization Identity""",
        per_channel.Regularization(),
    ),
    **_MERGES,
    "Concatenate": merging.Concatenation(),
    **_named(
        """MaxPooling1D MaxPooling2D MaxPooling3D AveragePooling1D AveragePooling2D AveragePooling3D UpSampling2D
        UpSampling3D Cropping2D Cropping3D""",
        spatial.Spatial(),
    ),
    **_named("ZeroPadding2D ZeroPadding3D", spatial.Padding()),
    **_named(
        """GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
        GlobalMaxPooling3D""",
        spatial.GlobalPooling(),
    ),
    **_named("RepeatVector UpSampling1D Cropping1D", spatial.Steps()),
    "ZeroPadding1D": spatial.Steps(pads=True),
    "Reshape": reshaping.Reshape(),
    "Flatten": reshaping.Flatten(),
    "Permute": reshaping.Permute(),
    **_named("SimpleRNN LSTM GRU", recurrent.Recurrent()),
}
_OPERATIONS: dict[str, Rule] = {
    **_named(
        "Relu Relu6 Sigmoid Tanh Silu Elu Selu Gelu Softplus Softsign LeakyRelu HardSigmoid HardSilu Abs Negative "
        "Square Sqrt Exp",
        per_channel.Elementwise(),
    ),
    **_MERGES,
}
"""Operations of Keras 3 by class."""
_TF_OPERATIONS: dict[str, Rule] = {
    **_named(
        "nn.relu nn.relu6 math.sigmoid nn.sigmoid math.tanh nn.tanh nn.silu nn.swish nn.elu nn.selu math.abs "
        "math.negative math.square math.exp identity",
        per_channel.Elementwise(),
    ),
    **_named("math.add __operators__.add", _MERGES["Add"]),
    **_named("math.subtract __operators__.sub", _MERGES["Subtract"]),
    **_named("math.multiply __operators__.mul", _MERGES["Multiply"]),
    "math.maximum": _MERGES["Maximum"],
    "math.minimum": _MERGES["Minimum"],
}
"""Operations of TensorFlow in a model of tf_keras by symbol, without `tf.`"""


def rule_for(layer: Any) -> Rule:
    """The rule of a layer or operation; `Opaque` where nothing is known."""
    if not hasattr(layer, "weights"):
        known = _OPERATIONS.get(type(layer).__name__) if ".ops." in type(layer).__module__ else None
        return known or wrappers.Opaque()
    if not calls_as_keras(layer):
        return wrappers.Opaque("computes something of its own")
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        return wrappers.Opaque("has weights in another form (LoRA, or quantized)")
    name = keras_class(layer)
    if name == "TFOpLambda":
        return _TF_OPERATIONS.get(layer.symbol.removeprefix("tf."), wrappers.Opaque())
    if name == "Activation":
        elementwise = activation_name(layer) in ELEMENTWISE_ACTIVATIONS
        return per_channel.Elementwise() if elementwise else wrappers.Opaque("mixes channels, or is not known not to")
    if name == "Rescaling":
        numbers = all(isinstance(value, (int, float)) for value in (layer.scale, layer.offset))
        return per_channel.Elementwise() if numbers else wrappers.Opaque()
    if name in ("BatchNormalization", "SyncBatchNormalization", "GroupNormalization"):
        return per_channel.rule_for_normalization(layer) or wrappers.Opaque("normalises several channels together")
    if name in ("LayerNormalization", "UnitNormalization", "RMSNormalization", "Softmax"):
        return wrappers.Opaque("normalises several channels together, so that one fewer would change the others")
    if name == "TimeDistributed":
        return wrappers.TimeDistributed(rule_for(layer.layer))
    return _LAYERS.get(name) or wrappers.Opaque()
