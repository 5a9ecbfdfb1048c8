"""CONV(PAD(x)) -> CONV(x, pads) for zeros around the spatial axes of a convolution without SAME padding;
MAX_POOL_2D(PAD(x)) -> MAX_POOL_2D(x, pads) where x is never negative, since a pooling's own padding takes no part.

An EXPAND_DIMS between the two (1-D convolutions) is looked through: CONV(EXPAND_DIMS(PAD(x))) -> CONV(EXPAND_DIMS(x),
pads). Averages count the zeros of a PAD and stay.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from converter.constants import is_float, uniform, value_of
from converter.linear import LINEAR
from converter.ranges import value_range
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor

AXES = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "CONV_3D": 3, "MAX_POOL_2D": 2}
"""How many spatial axes, the first of which is axis 1."""


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes(*AXES):
        pad = _pad_before(rewriter, node)
        if pad is not None and _fuse(rewriter, node, *pad):
            changes.append(f"{layer(pad[0])} fused into {layer(node)}")
    rewriter.commit()
    return changes


def _pad_before(rewriter: Rewriter, node: Node) -> tuple[Node, Node | None, np.ndarray] | None:
    """(PAD node, EXPAND_DIMS node or None, amounts (rank of the convolution, 2)) of zeros before this node.

    Others may read the PAD too: they take it in themselves, or it stays for them.
    """
    x = node.inputs[0]
    pad, expand = rewriter.producer(x, "PAD", "PADV2"), rewriter.producer(x, "EXPAND_DIMS")
    if expand is not None:
        pad = rewriter.producer(expand.inputs[0], "PAD", "PADV2")
    amounts = None if pad is None else value_of(pad.inputs[1])
    if pad is None or amounts is None or not _pads_zeros(pad):
        return None
    if expand is not None:
        axis = value_of(expand.inputs[1])
        if axis is None:
            return None
        amounts = np.insert(amounts, int(axis.reshape(())) % (len(amounts) + 1), 0, axis=0)
    return pad, expand, amounts


def _pads_zeros(pad: Node) -> bool:
    """Whether what is put around are zeros: of int8, the number that stands for them."""
    source, padded = pad.inputs[0], pad.outputs[0]
    if is_float(padded):
        return pad.op == "PAD" or uniform(pad.inputs[2]) == 0.0
    if source is None or padded.dtype != np.int8 or padded.quantization is None:
        return False
    same = source.quantization == padded.quantization and not padded.quantization.per_channel
    return same and (pad.op == "PAD" or uniform(pad.inputs[2]) == padded.quantization.zero_point[0])


def _fuse(rewriter: Rewriter, node: Node, pad: Node, expand: Node | None, amounts: np.ndarray) -> bool:
    attributes, count = node.attributes, AXES[node.op]
    spatial = amounts[1 : 1 + count]
    source = pad.inputs[0]
    if (
        attributes.padding == "SAME"
        or amounts[0].any()
        or amounts[1 + count :].any()
        or (spatial < 0).any()
        or source is None
    ):
        return False
    before = np.array(attributes.pads or [0] * 2 * count).reshape(count, 2)
    pads = before + spatial
    if node.op not in LINEAR and not _pool_keeps(rewriter, node, source, pads):
        return False
    padding = "EXPLICIT" if pads.any() else "VALID"
    flat = tuple(int(v) for v in pads.reshape(-1)) if pads.any() else ()
    if expand is not None:
        source = rewriter.add("EXPAND_DIMS", [source, expand.inputs[1]], before=node, name=expand.name)
    rewriter.rewrite(
        node, inputs=[source, *node.inputs[1:]], attributes=dataclasses.replace(attributes, padding=padding, pads=flat)
    )
    return True


def _pool_keeps(rewriter: Rewriter, node: Node, source: Tensor, pads: np.ndarray) -> bool:
    """Whether zeros around x never win over what a window holds of x, and every window holds some of it."""
    if not is_float(source):
        return False
    filters = np.array([node.attributes.filter_h, node.attributes.filter_w])
    return bool((pads < filters[:, None]).all()) and value_range(rewriter, source)[0] >= 0.0
