"""Small float graphs, built node by node, and ranges that make quantization errors easy to bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema import ops
from schema.graph import Constant, Graph, Node, Tensor, types_of


class Builder:
    """Adds nodes to a graph; each method returns the output tensor. `end` names the outputs and gives the graph."""

    def __init__(self, seed: int = 20):
        self.graph = Graph()
        self.rng = np.random.default_rng(seed)

    def input(self, name: str, *shape: int | None, dtype: Any = np.float32) -> Tensor:
        tensor = Tensor(name, dtype, shape)
        self.graph.inputs.append(tensor)
        self.graph.input_names.append(name)
        return tensor

    def constant(self, value: Any, dtype: Any = np.float32) -> Tensor:
        return Tensor.from_array("constant", np.asarray(value, dtype))

    def node(self, op: str, *inputs: Tensor | None, attributes: Any = None, name: str = "") -> Tensor:
        (output,) = self.nodes(op, *inputs, attributes=attributes, name=name)
        return output

    def nodes(self, op: str, *inputs: Tensor | None, attributes: Any = None, name: str = "") -> list[Tensor]:
        name = name or f"{op.lower()}_{len(self.graph.nodes)}"
        kind = ops.get(op)
        if attributes is None and kind.Attributes is not None:
            attributes = kind.Attributes()
        values = [None if tensor is None else tensor.value for tensor in inputs]
        inferred = kind.infer(attributes, types_of(inputs), values)
        outputs = [Tensor(f"{name}:{i}", k.dtype, k.shape) for i, k in enumerate(inferred)]
        self.graph.nodes.append(Node(op, list(inputs), outputs, attributes, name))
        return outputs

    def conv(self, x: Tensor, channels: int, kernel: int = 3, name: str = "", **attributes: Any) -> Tensor:
        """CONV_2D, SAME, with random weights whose channels differ in size, and a bias."""
        depth = x.shape[-1]
        size = self.rng.uniform(0.2, 2, (channels, 1, 1, 1)) / (kernel * np.sqrt(depth))
        weights = self.constant(self.rng.normal(0, 1, (channels, kernel, kernel, depth)) * size)
        bias = self.constant(self.rng.normal(0, 0.3, channels))
        given = ops.get("CONV_2D").Attributes(**{"padding": "SAME", **attributes})
        return self.node("CONV_2D", x, weights, bias, attributes=given, name=name)

    def depthwise(self, x: Tensor, multiplier: int = 1, kernel: int = 3, name: str = "", **attributes: Any) -> Tensor:
        channels = x.shape[-1] * multiplier
        weights = self.constant(self.rng.normal(0, 1 / kernel, (1, kernel, kernel, channels)))
        bias = self.constant(self.rng.normal(0, 0.3, channels))
        given = ops.get("DEPTHWISE_CONV_2D").Attributes(**{"padding": "SAME", **attributes})
        return self.node("DEPTHWISE_CONV_2D", x, weights, bias, attributes=given, name=name)

    def dense(self, x: Tensor, units: int, name: str = "", **attributes: Any) -> Tensor:
        weights = self.constant(self.rng.normal(0, 1 / np.sqrt(x.shape[-1]), (units, x.shape[-1])))
        bias = self.constant(self.rng.normal(0, 0.3, units))
        given = ops.get("FULLY_CONNECTED").Attributes(**attributes)
        return self.node("FULLY_CONNECTED", x, weights, bias, attributes=given, name=name)

    def end(self, *outputs: Tensor, names: Sequence[str] = ()) -> Graph:
        self.graph.outputs = list(outputs)
        self.graph.output_names = list(names) or [f"output{i}" for i in range(len(outputs))]
        return self.graph


def clustered(values: np.ndarray, count: int, scale: np.ndarray | None = None, axis: int = 0) -> Tensor:
    """A kernel with `count` distinct values at quantiles of `values`, times a factor for each channel."""
    centers = np.quantile(values, (np.arange(count) + 0.5) / count).astype(np.float32)
    nearest = np.abs(values[..., np.newaxis] - centers).argmin(axis=-1)
    tensor = Tensor.from_array("kernel", centers[nearest])
    if scale is not None:
        tensor.set_constant(Constant(centers[nearest], np.asarray(scale, np.float32), axis))
    return tensor
