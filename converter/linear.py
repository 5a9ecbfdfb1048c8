"""Ops that are linear in their input: which operand is which, and scaling their weights and biases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converter.constants import constant, float_value, is_float
from converter.rewriter import Rewriter
from schema.graph import Constant, Node, Tensor


@dataclass(frozen=True)
class Operands:
    """Positions of a linear op's inputs, and the weights' axes of output and input channels (None: depthwise)."""

    x: int
    weights: int
    bias: int
    out_axis: int
    in_axis: int | None
    transposed: bool = False


LINEAR: dict[str, Operands] = {
    "CONV_2D": Operands(0, 1, 2, out_axis=0, in_axis=3),
    "DEPTHWISE_CONV_2D": Operands(0, 1, 2, out_axis=3, in_axis=None),
    "FULLY_CONNECTED": Operands(0, 1, 2, out_axis=0, in_axis=1),
    "TRANSPOSE_CONV": Operands(2, 1, 3, out_axis=0, in_axis=3, transposed=True),
    "CONV_3D": Operands(0, 1, 2, out_axis=4, in_axis=3),
    "CONV_3D_TRANSPOSE": Operands(2, 1, 3, out_axis=3, in_axis=4, transposed=True),
}


def foldable(node: Node) -> bool:
    """Whether the node's weights, and its bias if it has one, are real constants that a rewrite may change."""
    operands = LINEAR[node.op]
    weights, bias = node.inputs[operands.weights], bias_of(node)
    return (
        weights is not None
        and weights.is_constant
        and is_float(weights)
        and (bias is None or float_value(bias) is not None)
    )


def bias_of(node: Node) -> Tensor | None:
    index = LINEAR[node.op].bias
    return node.inputs[index] if len(node.inputs) > index else None


def channels_of(node: Node) -> int:
    """How many output channels the node has."""
    weights = node.inputs[LINEAR[node.op].weights]
    assert weights is not None and weights.shape is not None
    channels = weights.shape[LINEAR[node.op].out_axis]
    assert channels is not None
    return channels


def scale_channels(weights: Tensor, axis: int, scale: np.ndarray) -> Tensor:
    """The weights times `scale` (channels,) along the axis: stored values stay, their factor per channel changes."""
    stored = weights.constant
    assert stored is not None
    if stored.channel_scale is None:
        return _stored(weights, Constant(stored.values, scale.astype(np.float32), axis))
    if stored.axis == axis:
        factor = (np.asarray(stored.channel_scale, np.float64) * scale).astype(np.float32)
        return _stored(weights, Constant(stored.values, factor, axis))
    assert weights.value is not None  # factors along another axis are multiplied in
    return _stored(weights, Constant(weights.value, scale.astype(np.float32), axis))


def scale_elements(weights: Tensor, scale: np.ndarray) -> Tensor:
    """The weights times an array that broadcasts against them: stored values are multiplied, a factor stays."""
    stored = weights.constant
    assert stored is not None
    values = np.multiply(stored.values, scale.astype(np.float32)).astype(weights.dtype, copy=False)
    return _stored(weights, Constant(values, stored.channel_scale, stored.axis))


def set_operands(rewriter: Rewriter, node: Node, weights: Tensor | None = None, bias: np.ndarray | None = None) -> None:
    """Give the node other weights, or a bias (channels,); one of zeros is left out."""
    operands = LINEAR[node.op]
    inputs = list(node.inputs)
    if weights is not None:
        inputs[operands.weights] = weights
    if bias is not None:
        before, x = bias_of(node), inputs[operands.x]
        assert x is not None
        name = before.name if before is not None else f"{node.name}/bias"
        inputs = inputs[: operands.bias]
        if bias.any():
            inputs += [None] * (operands.bias - len(inputs)) + [constant(name, bias.astype(x.dtype))]
    rewriter.rewrite(node, inputs=inputs)


def bias_value(node: Node) -> np.ndarray:
    """The bias in float64 (channels,), zeros where there is none."""
    value = float_value(bias_of(node))
    return np.zeros(channels_of(node)) if value is None else value.astype(np.float64).reshape(-1)


def _stored(weights: Tensor, stored: Constant) -> Tensor:
    return Tensor(weights.name, weights.dtype, weights.shape, weights.quantization, stored)
