"""What a conversion did: sizes, layers, rewrites, quantization, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from converter import preservation
from converter.diagnosis import Diagnosis
from converter.passes.manager import Explanation
from converter.quantize import Report as QuantizationReport
from converter.tables import table
from schema import inference
from schema.graph import Constant, Graph, Tensor, TensorType, all_nodes, nested


@dataclass(frozen=True)
class Layer:
    """A layer of the source model as it is in the file.

    ops: its nodes, in order. output: type of its last node's first output. parameters: stored numbers; stored_bytes:
    what they take in the file (of what several layers share, at the first of them).
    """

    name: str
    ops: tuple[str, ...]
    output: TensorType
    parameters: int
    stored_bytes: int


@dataclass
class Report:
    """bytes: of the whole file. nodes: how many, those in branches and loops among them. seconds: by stage.
    quantization: what was done, None for nothing. integer_source: whether the source was quantized already. diagnosis:
    where `convert` was asked for it. preserved: pruned and clustered kernels, and what the file has of them. stored:
    bytes of each layer's weights in the file.
    """

    source: str
    bytes: int
    graph: Graph = field(repr=False)
    explanation: Explanation = field(repr=False)
    quantization: QuantizationReport | None = field(default=None, repr=False)
    seconds: dict[str, float] = field(default_factory=dict)
    integer_source: bool = False
    diagnosis: Diagnosis | None = field(default=None, repr=False)
    preserved: Sequence[preservation.Preserved] = field(default=(), repr=False)
    stored: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def nodes(self) -> int:
        return sum(1 for _ in all_nodes(self.graph))

    @cached_property
    def layers(self) -> list[Layer]:
        """In the order in which they first run."""
        types: dict[Tensor, TensorType] = {}
        for inner in nested(self.graph):
            types.update(inference.infer(inner).types)
        found: dict[str, Layer] = {}
        counted: set[Constant] = set()
        for node in all_nodes(self.graph):
            layer = found.get(node.name)
            ops, parameters = ((), 0) if layer is None else (layer.ops, layer.parameters)
            for tensor in node.inputs:
                if tensor is None or tensor.constant is None or tensor.constant in counted:
                    continue
                counted.add(tensor.constant)
                parameters += tensor.constant.values.size
            stored = self.stored.get(node.name, 0)
            found[node.name] = Layer(node.name, (*ops, node.op), types[node.outputs[0]], parameters, stored)
        return list(found.values())

    def summary(self) -> str:
        """One line."""
        kind = "quantized as its source" if self.integer_source else "float32"
        kind = kind if self.quantization is None else self.quantization.method
        seconds = sum(self.seconds.values())
        return f"{self.bytes} bytes, {self.nodes} nodes, {kind}, converted in {seconds:.1f} s"

    def __str__(self) -> str:
        """Everything, for people."""
        parts = [f"{self.source}: {self.summary()}", self.signature(), str(self.explanation)]
        if self.quantization is not None:
            parts.append(str(self.quantization))
        if self.preserved:
            parts.append(preservation.describe(self.preserved))
        rows = [("layer", "ops", "output", "parameters", "bytes")]
        rows += [(x.name, "+".join(x.ops), str(x.output), str(x.parameters), str(x.stored_bytes)) for x in self.layers]
        besides = self.bytes - sum(layer.stored_bytes for layer in self.layers)
        rows.append(("(graph, names, checksums)", "", "", "", str(besides)))
        parts.append(table(rows, right=(3, 4)))
        parts.append("seconds: " + ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items()))
        return "\n\n".join(parts)

    def signature(self) -> str:
        """Inputs, outputs and state, a line each."""
        types = inference.infer(self.graph).types
        ends = (
            ("input", self.graph.argument_names, self.graph.arguments),
            ("output", self.graph.result_names, self.graph.results),
            ("state", self.graph.state_names, self.graph.inputs[len(self.graph.arguments) :]),
        )
        return "\n".join(
            f"{kind} '{name}': {types[tensor]}"
            + (f", {tensor.quantization}" if tensor.quantization is not None else "")
            for kind, names, tensors in ends
            for name, tensor in zip(names, tensors, strict=True)
        )
