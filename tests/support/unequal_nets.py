"""Nets whose channels differ in range by a thousand, as in MobileNets that nobody equalized."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from schema.graph import Constant, Graph
from tests.support.float_graphs import Builder


def inverted_residual(activation: str = "RELU", spread: float = 1000.0, seed: int = 20) -> Graph:
    """stem -> depthwise -> project -> expand -> mean -> scores; channels differ in range by a factor of `spread`."""
    builder = Builder(seed)
    x = builder.input("image", None, 12, 12, 3)
    y = builder.conv(x, 16, name="stem", activation=activation)
    y = builder.depthwise(y, name="depthwise", activation=activation)
    y = builder.conv(y, 8, 1, name="project")
    y = builder.conv(y, 24, 1, name="expand", activation=activation)
    y = builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="mean")
    graph = builder.end(builder.dense(y, 5, name="scores"))
    nodes = {node.name: node for node in graph.nodes}
    for writer, reader in pairwise(["stem", "depthwise", "project", "expand", "scores"]):
        weights, bias = nodes[writer].inputs[1:]
        depthwise = [name == "depthwise" for name in (writer, reader)]
        channels = weights.shape[3 if depthwise[0] else 0]
        factors = spread ** -builder.rng.permutation(np.linspace(0, 1, channels))
        first = factors if depthwise[0] else factors.reshape(-1, *[1] * (len(weights.shape) - 1))
        weights.set_constant(Constant((weights.value * first).astype(np.float32)))
        bias.set_constant(Constant((bias.value * factors).astype(np.float32)))
        read = nodes[reader].inputs[1]
        read.set_constant(Constant((read.value / factors).astype(np.float32)))
    return graph


def images(rng: np.random.Generator, count: int, size: int = 12, channels: int = 3) -> np.ndarray:
    """Smooth random images."""
    noise = rng.normal(0, 1, (count, size, size, channels))
    return (noise + np.roll(noise, 1, 1) + np.roll(noise, 1, 2)).astype(np.float32)
