"""BATCH_TO_SPACE_ND(CONV(SPACE_TO_BATCH_ND(x))) -> CONV(x, dilation), for 2-D, depthwise and 3-D convolutions, and
with an EXPAND_DIMS before and a SQUEEZE behind the convolution for 1-D ones.

The blocks are the dilations. Padding of the first less the cropping of the last is the convolution's own; where that
is what SAME would add, it becomes SAME. Both may depend on unknown sizes as long as the difference does not.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from converter.rewriter import Rewriter, layer
from converter.sizes import values
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node
from schema.ops.windows import along

AXES = {"CONV_2D": "hw", "DEPTHWISE_CONV_2D": "hw", "CONV_3D": "dhw"}


@dataclass
class Match:
    split: Node
    expand: Node | None
    conv: Node
    squeeze: Node | None
    join: Node
    axis: int | None
    """Where EXPAND_DIMS inserts its axis."""


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for join in rewriter.nodes("BATCH_TO_SPACE_ND"):
        match = _match(rewriter, join)
        attributes = None if match is None else _dilated(shapes, match)
        if match is None or attributes is None:
            continue
        _rewrite(rewriter, match, attributes)
        dilation = "x".join(map(str, along(attributes, "dilation", AXES[match.conv.op])))
        changes.append(f"{layer(match.conv)}: dilation {dilation} recovered")
    rewriter.commit()
    return changes


def _match(rewriter: Rewriter, join: Node) -> Match | None:
    squeeze = rewriter.producer(join.inputs[0], "SQUEEZE")
    conv = rewriter.producer(squeeze.inputs[0] if squeeze else join.inputs[0], *AXES)
    if conv is None:
        return None
    expand = rewriter.producer(conv.inputs[0], "EXPAND_DIMS") if squeeze else None
    split = rewriter.producer(expand.inputs[0] if expand else conv.inputs[0], "SPACE_TO_BATCH_ND")
    if split is None or (squeeze is None) != (expand is None):
        return None
    chain = [split, *([expand] if expand else []), conv, *([squeeze] if squeeze else []), join]
    for node, follower in pairwise(chain):
        if rewriter.only_consumer(node.outputs[0]) is not follower:
            return None
    axis = None
    if expand is not None and squeeze is not None:
        inserted = expand.inputs[1].value if expand.inputs[1] is not None else None
        removed = squeeze.attributes.axes
        if inserted is None or len(removed) != 1:
            return None
        axis = int(inserted.reshape(())) % 4
        if removed[0] % 4 != axis or axis not in (1, 2):
            return None
    return Match(split, expand, conv, squeeze, join, axis)


def _dilated(shapes: SymbolicShapes, match: Match):
    """The convolution's attributes with dilation, None where it is no dilated convolution."""
    split, join, a = match.split, match.join, match.conv.attributes
    axes = AXES[match.conv.op]
    blocks, pads = shapes.elements(split.inputs[1]), shapes.elements(split.inputs[2])
    same, crops = shapes.elements(join.inputs[1]), shapes.elements(join.inputs[2])
    if blocks is None or pads is None or same is None or crops is None or list(blocks) != list(same):
        return None
    if a.padding == "SAME" or any(a.pads) or set(along(a, "stride", axes) + along(a, "dilation", axes)) != {1}:
        return None
    sizes, amounts = values(list(blocks)), values(list((pads - crops).reshape(-1)))
    if None in sizes or any(amount is None or amount < 0 for amount in amounts):
        return None
    around = np.array(amounts).reshape(-1, 2)
    if match.axis is not None:
        sizes.insert(match.axis - 1, 1)
        around = np.insert(around, match.axis - 1, 0, axis=0)
    if len(sizes) > len(axes):
        return None
    sizes += [1] * (len(axes) - len(sizes))
    around = np.concatenate([around, np.zeros((len(axes) - len(around), 2), int)])
    padding, flat = _padding(match.conv, sizes, around)
    dilations = {f"dilation_{axis}": int(size or 1) for axis, size in zip(axes, sizes, strict=True)}
    return dataclasses.replace(a, padding=padding, pads=flat, **dilations)


def _padding(conv: Node, dilations: list[int | None], around: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """VALID or SAME where that is what the amounts are, else EXPLICIT with them."""
    weights = conv.inputs[1]
    assert weights is not None and weights.shape is not None
    kernel = weights.shape[:3] if conv.op == "CONV_3D" else weights.shape[1:3]
    if not around.any():
        return "VALID", ()
    totals = [(int(k or 1) - 1) * int(d or 1) for k, d in zip(kernel, dilations, strict=True)]
    if around.tolist() == [[total // 2, total - total // 2] for total in totals]:
        return "SAME", ()
    return "EXPLICIT", tuple(int(v) for v in around.reshape(-1))


def _rewrite(rewriter: Rewriter, match: Match, attributes) -> None:
    conv, join = match.conv, match.join
    x = match.split.inputs[0]
    if match.expand is None or match.squeeze is None:
        rewriter.rewrite(join, conv.op, [x, *conv.inputs[1:]], attributes, conv.name)
        return
    expanded = rewriter.add(
        "EXPAND_DIMS",
        [x, match.expand.inputs[1]],
        before=join,
        name=match.expand.name,
        quantization=match.expand.outputs[0].quantization,
    )
    out = rewriter.add(
        conv.op,
        [expanded, *conv.inputs[1:]],
        attributes,
        before=join,
        name=conv.name,
        quantization=conv.outputs[0].quantization,
    )
    rewriter.rewrite(join, "SQUEEZE", [out], match.squeeze.attributes, match.squeeze.name)
