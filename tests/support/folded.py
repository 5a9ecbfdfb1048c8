"""Dense layers whose channel scales and biases are those of a BatchNorm that was folded into them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schema import Constant, Graph, Model, Node, Tensor
from schema.ops import attributes as a

CHANNELS, DEPTH = 96, 72


def rounded(values: np.ndarray, step: float) -> np.ndarray:
    """To multiples of a step, of 8 bits."""
    return (np.clip(np.rint(values / step), -127, 127) * step).astype(np.float32)


def folded_layer(rng: np.random.Generator) -> tuple[Constant, Constant]:
    """(kernel, biases) of a sparse layer with BatchNorm in it, scales and biases rounded to multiples of a step."""
    density = rng.uniform(0.05, 0.6, (CHANNELS, 1))
    values = np.where(rng.random((CHANNELS, DEPTH)) < density, rng.integers(-2, 3, (CHANNELS, DEPTH)), 0)
    deviation = np.sqrt((values**2).sum(1) + 1)
    scale = rounded(rng.uniform(0.9, 1.1, CHANNELS) / deviation, 2**-9)
    bias = rounded(-0.7 * scale * values.sum(1) + rng.normal(size=CHANNELS) / 20, 2**-5)
    return Constant(values.astype(np.int8), scale, 0), Constant(bias)


def dense_model(kernel: Constant, biases: Sequence[Constant], names: Sequence[str]) -> Model:
    """Layers side by side on one input, with the same kernel and a bias each."""
    x, nodes, outputs = Tensor("x", np.dtype(np.float32), (None, DEPTH)), [], []
    for name, bias in zip(names, biases, strict=True):
        operands = [
            Tensor("w", np.dtype(np.float32), (CHANNELS, DEPTH), constant=kernel),
            Tensor("b", np.dtype(np.float32), (CHANNELS,), constant=bias),
        ]
        outputs.append(Tensor("y", np.dtype(np.float32)))
        nodes.append(Node("FULLY_CONNECTED", [x, *operands], outputs[-1:], a.FullyConnectedAttributes(), name))
    return Model([Graph(nodes, [x], ["x"], outputs, [f"y{i}" for i in range(len(outputs))])])
