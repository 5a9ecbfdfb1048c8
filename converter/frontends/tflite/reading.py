"""What the reader of one operator works with, and the table of readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from schema import ops
from schema.errors import FormatError, UnsupportedError
from schema.graph import Node, Shape, Tensor
from schema.quantization import Quantization


@dataclass
class Reading:
    """One operator, its inputs read already. Readers append the nodes that compute its outputs.

    options: the fields of its options table. layer: the name that its nodes get. states: what the model remembers from
    one run to the next, which becomes an input and an output of it: (before, after). variables: the inputs that are
    TFLite's variables, by their place among the inputs, where they are None. intermediates: tensors whose scales tell
    how the operator rounds inside.
    """

    options: dict[str, Any]
    custom_options: bytes
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    layer: str
    nodes: list[Node]
    states: list[tuple[Tensor, Tensor]]
    variables: dict[int, Tensor] = field(default_factory=dict)
    intermediates: list[Tensor] = field(default_factory=list)

    def operands(self, fewest: int, most: int | None = None) -> list[Tensor | None]:
        """The inputs, None for those left out, as many as there can be."""
        most = fewest if most is None else most
        if not fewest <= len(self.inputs) <= most or None in self.inputs[:fewest]:
            raise FormatError(f"{len(self.inputs)} inputs, or one that is left out; {fewest} to {most} are needed")
        return self.inputs + [None] * (most - len(self.inputs))

    def output(self) -> Tensor:
        if len(self.outputs) != 1:
            raise FormatError(f"{len(self.outputs)} outputs; there is one")
        return self.outputs[0]

    def emit(
        self, op: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor] | None = None, /, **attributes: Any
    ) -> None:
        """A node that computes these outputs, by default the operator's."""
        kind = ops.get(op).Attributes
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        outputs = self.outputs if outputs is None else outputs
        self.nodes.append(Node(op, given, list(outputs), None if kind is None else kind(**attributes), self.layer))

    def intermediate(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        dtype: Any,
        quantization: Quantization | None = None,
        /,
        **attributes: Any,
    ) -> Tensor:
        """A node with one output that the file does not have."""
        tensor = Tensor(f"{self.layer}/{op.lower()}", dtype, None, quantization)
        self.emit(op, inputs, [tensor], **attributes)
        return tensor

    def constant(self, array: Any, dtype: Any) -> Tensor:
        return Tensor.from_array(f"{self.layer}/constant", np.asarray(array, dtype))

    def activation(self) -> dict[str, str]:
        """The fused activation as an attribute. Raises UnsupportedError for one that LiteRT does not compute either."""
        activation = self.options["fused_activation_function"]
        if activation not in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
            raise UnsupportedError(f"a fused {activation} is not supported")
        return {"activation": activation}

    def no_activation(self) -> None:
        if self.activation()["activation"] != "NONE":
            raise FormatError("this operator has no fused activation")

    def shape(self, tensor: Tensor) -> Shape:
        """The declared shape."""
        return () if tensor.shape is None else tensor.shape


class Reader(NamedTuple):
    """options: the name of the operator's options table, None where it has none that is read."""

    options: str | None
    read: Callable[[Reading], None]


READERS: dict[str, Reader] = {}


def reads(*names: str, options: str | None = None) -> Callable[[Callable[[Reading], None]], Callable[[Reading], None]]:
    """Register a function as the reader of these builtin operators."""

    def register(function: Callable[[Reading], None]) -> Callable[[Reading], None]:
        for name in names:
            READERS[name] = Reader(options, function)
        return function

    return register
