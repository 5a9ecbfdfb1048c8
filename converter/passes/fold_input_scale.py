"""CONV(ADD(MUL(x, s), t), w, b) -> CONV(x, w * s, b + sum(w * t)), for every linear op, s and t one number for each
input channel.

Rescaling and Normalization before the first layer, and BatchNorm before a Dense or convolution. Exact only where the
padding is empty, since padding is 0 and not t; elsewhere the addend stays: CONV(ADD(x, t/s), w * s, b).
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, has_codebook, is_float, operand, per_channel
from converter.linear import LINEAR, bias_value, channels_of, foldable, scale_channels, scale_elements, set_operands
from converter.rewriter import Rewriter
from schema.graph import Graph, Node, Tensor

LARGEST_OFFSET = 8.0
"""An addend moved behind the weights is lost in rounding where it is much larger than what it is added to."""


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes(*LINEAR):
        x = node.inputs[LINEAR[node.op].x]
        if not foldable(node) or x is None or not is_float(x) or x.shape is None or x.shape[-1] is None:
            continue
        before = _chain(rewriter, node, x, len(x.shape), x.shape[-1])
        if before and _fold(rewriter, node, before, x.shape[-1]):
            names = list(dict.fromkeys(n.name for n in before if n.name))
            changes.append(f"{' and '.join(names) or 'input scale'} before {node.name or node.op} folded into it")
    rewriter.commit()
    return changes


def _chain(rewriter: Rewriter, node: Node, x: Tensor, rank: int, channels: int) -> list[Node]:
    """The MUL and ADD nodes with constants per channel that make x, from the outside in, read by nobody else."""
    chain: list[Node] = []
    reader = node
    while True:
        maker = rewriter.producer(x, "ADD", "MUL")
        if maker is None or rewriter.only_consumer(x) is not reader or maker.attributes.activation != "NONE":
            return chain
        pair = operand(maker)
        if pair is None or per_channel(pair[1], rank, channels) is None or pair[0].shape != x.shape:
            return chain
        chain.append(maker)
        reader, x = maker, pair[0]


def _fold(rewriter: Rewriter, node: Node, chain: list[Node], channels: int) -> bool:
    scale, offset = np.ones(channels), np.zeros(channels)
    uniform = True
    source = None
    for maker in reversed(chain):
        pair = operand(maker)
        assert pair is not None
        source = source or pair[0]
        number = np.broadcast_to(pair[1].astype(np.float64).reshape(-1), (channels,))
        if maker.op == "MUL":
            scale, offset, uniform = scale * number, offset * number, uniform and pair[1].size == 1
        else:
            offset = offset + number
    assert source is not None
    operands = LINEAR[node.op]
    weights = node.inputs[operands.weights]
    assert weights is not None and weights.constant is not None
    inside = _pads_nothing(node) and bool(np.abs(offset).max() <= LARGEST_OFFSET)
    rest = np.zeros(channels) if inside else np.divide(offset, scale, out=np.full(channels, np.inf), where=scale != 0)
    if not np.isfinite(scale).all() or not np.isfinite(rest).all() or ((scale == 1.0).all() and not inside):
        return False
    if not uniform and operands.in_axis is not None and has_codebook(weights.constant):
        return False
    inputs = list(node.inputs)
    inputs[operands.x] = source
    if rest.any():
        addend = rest.astype(source.dtype)
        added = constant(f"{chain[0].name}/addend", addend[0] if (addend == addend[0]).all() else addend)
        inputs[operands.x] = rewriter.add("ADD", [source, added], chain[0].attributes, before=node, name=chain[0].name)
    bias = bias_value(node) + _response(node, weights, offset) if inside and offset.any() else None
    rewriter.rewrite(node, inputs=inputs)
    set_operands(rewriter, node, _scaled(node, weights, scale, uniform), bias)
    return True


def _pads_nothing(node: Node) -> bool:
    """Whether every output is made of the same number of inputs, none of them padding."""
    if node.op == "FULLY_CONNECTED":
        return True
    if LINEAR[node.op].transposed:
        return False
    attributes, weights = node.attributes, node.inputs[1]
    assert weights is not None and weights.shape is not None
    if attributes.padding == "EXPLICIT":
        return not any(attributes.pads)
    spatial = weights.shape[:3] if node.op == "CONV_3D" else weights.shape[1:3]
    return attributes.padding == "VALID" or all(size == 1 for size in spatial)


def _by_output(node: Node, weights: Tensor, per_input: np.ndarray) -> np.ndarray:
    """A number for each input channel as an array that broadcasts against the weights."""
    operands, rank = LINEAR[node.op], len(weights.shape or ())
    shape = [1] * rank
    if operands.in_axis is None:
        shape[operands.out_axis] = -1
        return np.repeat(per_input, channels_of(node) // len(per_input)).reshape(shape)
    assert weights.shape is not None
    per_group = weights.shape[operands.in_axis]
    assert per_group is not None
    groups = len(per_input) // per_group
    shape[operands.in_axis] = per_group
    if groups > 1:
        shape[operands.out_axis] = channels_of(node)
        rows = np.repeat(per_input.reshape(groups, per_group), channels_of(node) // groups, axis=0)
        ordered = rows if operands.out_axis < operands.in_axis else rows.T
        return ordered.reshape(shape)
    return per_input.reshape(shape)


def _scaled(node: Node, weights: Tensor, scale: np.ndarray, uniform: bool) -> Tensor:
    operands = LINEAR[node.op]
    if operands.in_axis is None or uniform:
        factor = (
            _by_output(node, weights, scale).reshape(-1)
            if operands.in_axis is None
            else np.full(channels_of(node), scale[0])
        )
        return scale_channels(weights, operands.out_axis, factor)
    return scale_elements(weights, _by_output(node, weights, scale))


def _response(node: Node, weights: Tensor, offset: np.ndarray) -> np.ndarray:
    """What the layer without its bias makes of an input that is `offset` everywhere: (output channels,)."""
    out_axis = LINEAR[node.op].out_axis
    assert weights.value is not None
    products = weights.value.astype(np.float64) * _by_output(node, weights, offset)
    return products.sum(axis=tuple(axis for axis in range(products.ndim) if axis != out_axis))
