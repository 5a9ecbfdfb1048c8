"""How each kind of Keras layer is quantized: the same points at which the converter rounds."""

from __future__ import annotations

from typing import Any

from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.settings import Settings
from xnn_tf.quantization.strategies.activation import ActivationStrategy
from xnn_tf.quantization.strategies.attention import AttentionStrategy
from xnn_tf.quantization.strategies.batch_norm import BatchNormStrategy
from xnn_tf.quantization.strategies.embedding import EmbeddingStrategy
from xnn_tf.quantization.strategies.linear import LinearStrategy
from xnn_tf.quantization.strategies.merging import MergingStrategy
from xnn_tf.quantization.strategies.pooling import MeanStrategy, SameScaleStrategy
from xnn_tf.quantization.strategies.recurrent import BidirectionalStrategy, RecurrentStrategy
from xnn_tf.quantization.strategies.separable import SeparableStrategy
from xnn_tf.quantization.strategies.weights_only import WeightsOnlyStrategy
from xnn_tf.quantization.strategy import Strategy

KINDS: dict[str, type[Strategy]] = {
    **dict.fromkeys("Dense EinsumDense Conv1D Conv2D Conv3D DepthwiseConv1D DepthwiseConv2D".split(), LinearStrategy),
    **dict.fromkeys("Conv1DTranspose Conv2DTranspose Conv3DTranspose".split(), LinearStrategy),
    **dict.fromkeys("SeparableConv1D SeparableConv2D".split(), SeparableStrategy),
    "BatchNormalization": BatchNormStrategy,
    "Embedding": EmbeddingStrategy,
    **dict.fromkeys("Add Subtract Multiply Average Maximum Minimum Concatenate Dot".split(), MergingStrategy),
    **dict.fromkeys("Activation ReLU LeakyReLU PReLU ELU Softmax".split(), ActivationStrategy),
    **dict.fromkeys("AveragePooling1D AveragePooling2D AveragePooling3D UpSampling2D".split(), SameScaleStrategy),
    **dict.fromkeys("GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D".split(), MeanStrategy),
    "MultiHeadAttention": AttentionStrategy,
    **dict.fromkeys("LSTM GRU SimpleRNN".split(), RecurrentStrategy),
    "Bidirectional": BidirectionalStrategy,
}
"""By the Keras class of the layer. Others that have kernels keep them in few bits and compute in float32."""


def strategy_for(layer: Any, settings: Settings) -> Strategy | None:
    """The strategy of a layer, None where there is nothing to quantize. A method `quantization_strategy(settings)` of
    the layer goes before what its class stands for.
    """
    own = getattr(layer, "quantization_strategy", None)
    if own is not None:
        return own(settings)
    kinds = [cls.__name__ for cls in type(layer).__mro__ if cls.__module__.partition(".")[0] in ("keras", "tf_keras")]
    kind = KINDS.get(kinds[0]) if kinds else None
    if kind is not None and type(layer).__name__ == kinds[0] and kind.takes(layer):
        return kind(settings)
    return WeightsOnlyStrategy(settings) if has_weights(layer) else None


def has_weights(layer: Any) -> bool:
    """Whether weights of the layer may be stored in fewer bits."""
    return bool(find_kernels(layer))
