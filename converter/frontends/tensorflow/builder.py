"""Grows a schema.Graph node by node, knowing every tensor's type as it goes and computing what depends on constants
alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from schema import evaluate, ops
from schema.graph import Graph, Node, Shape, Tensor, TensorType
from schema.inference import CONTROL_FLOW, Inference, infer_node

FOLD_LIMIT = 1 << 20
"""Constants may become this many elements larger by being computed here: a FILL of millions stays a FILL."""


class Builder:
    """Nodes in the order in which they are emitted."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inference = Inference()

    def input(self, name: str, dtype: np.dtype, shape: Shape | None) -> Tensor:
        """A tensor that the caller of the model gives."""
        tensor = Tensor(name, dtype, shape)
        self.inference.types[tensor] = tensor.type
        return tensor

    def constant(self, array: np.ndarray, name: str = "") -> Tensor:
        tensor = Tensor.from_array(name, array)
        self.inference.types[tensor] = tensor.type
        return tensor

    def emit(self, op: str, inputs: Sequence[Tensor | None], attributes: Any, layer: str, name: str) -> list[Tensor]:
        """A node of the op, named after its layer; its output tensors are named `name` (and `name:1`, ...).

        Where all inputs are constants, the results are constants and there is no node.
        Raises XnnError for inputs that do not fit together.
        """
        given = ops.get(op)
        given.check(attributes)
        types = [None if tensor is None else self.type(tensor) for tensor in inputs]
        values = [self.value(tensor) for tensor in inputs]
        kinds = given.infer(attributes, types, values)
        outputs = [Tensor(f"{name}:{i}" if i else name, kind.dtype, kind.shape) for i, kind in enumerate(kinds)]
        node = Node(op, list(inputs), outputs, attributes, layer)
        if op not in CONTROL_FLOW and self._foldable(inputs, kinds):
            arrays = evaluate.run_node(node, [None if tensor is None else tensor.value for tensor in inputs])
            return [self.constant(array, tensor.name) for tensor, array in zip(outputs, arrays, strict=True)]
        infer_node(node, self.inference)
        for tensor in outputs:
            tensor.shape = self.inference.types[tensor].shape
        self.nodes.append(node)
        return outputs

    def type(self, tensor: Tensor) -> TensorType:
        return self.inference.types.setdefault(tensor, tensor.type)

    def value(self, tensor: Tensor | None) -> np.ndarray | None:
        """What is known to be the tensor's value: constants, and arithmetic on shapes that are known."""
        return self.inference.value(tensor)

    def graph(
        self, inputs: list[Tensor], input_names: list[str], outputs: list[Tensor], output_names: list[str]
    ) -> Graph:
        """The finished graph. Outputs that are inputs, constants, or one tensor twice get nodes of their own."""
        distinct: list[Tensor] = []
        computed = {tensor for node in self.nodes for tensor in node.outputs}
        for tensor, name in zip(outputs, output_names, strict=True):
            if tensor not in computed or tensor in distinct:
                tensor = self._copy(tensor, name)
            distinct.append(tensor)
        return Graph(self.nodes, inputs, input_names, distinct, output_names)

    def _copy(self, tensor: Tensor, name: str) -> Tensor:
        kind = self.type(tensor)
        output = Tensor(name, kind.dtype, kind.shape)
        node = Node("CAST", [tensor], [output], ops.get("CAST").Attributes(kind.dtype), name)  # type: ignore[misc]
        infer_node(node, self.inference)
        self.nodes.append(node)
        return output

    def _foldable(self, inputs: Sequence[Tensor | None], kinds: Sequence[TensorType]) -> bool:
        if not inputs or not all(tensor is None or tensor.is_constant for tensor in inputs):
            return False
        if not all(kind.is_static for kind in kinds):
            return True  # the values decide how large it is: a RESHAPE or a RANGE
        given = sum(math.prod(tensor.shape or ()) for tensor in inputs if tensor is not None)  # type: ignore[arg-type]
        return sum(math.prod(kind.shape or ()) for kind in kinds) <= given + FOLD_LIMIT  # type: ignore[arg-type]
