"""Old models of uint8 as int8: a quantized number q with zero point z becomes q - 128 with zero point z - 128.

Both stand for the same real number, and TFLite's kernels for the two dtypes do the same arithmetic on q - z. The few
ops that round uint8 in their own way stay uint8 (NATIVE). QUANTIZE nodes, which only subtract or add the 128, stand
between the two, and at the model's inputs and outputs, which keep their dtype.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from schema import ops
from schema.graph import Constant, Graph, Node, Tensor
from schema.quantization import Quantization

UINT8, INT8 = np.dtype(np.uint8), np.dtype(np.int8)
OFFSET = 128
NATIVE = frozenset("AVERAGE_POOL_2D L2_NORMALIZATION CONCATENATION RESIZE_BILINEAR SCATTER_ND CAST IF WHILE".split())
"""Means round halves up, vectors are normalized in other steps, joined tensors and resized images are rounded in
float32; SCATTER_ND and CAST take numbers for what they are; graphs that nodes run keep the dtypes of their operands."""

LINEAR = {"CONV_2D": (0, 1), "DEPTHWISE_CONV_2D": (0, 1), "TRANSPOSE_CONV": (2, 1), "FULLY_CONNECTED": (0, 1)}
"""(input, weights) of ops on stored weights."""


def rewrite(graph: Graph) -> None:
    """Change the graph in place. Its inputs and outputs, and graphs without quantized uint8, stay as they are."""
    if any(_is_legacy(tensor) for tensor in graph.tensors()):
        _Rewriting(graph).run()


def _is_legacy(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == UINT8 and tensor.quantization is not None


class _Rewriting:
    """native: uint8 tensors that are computed as such. twins: the int8 tensor of a uint8 one."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.native: set[Tensor] = set(graph.inputs)
        self.twins: dict[Tensor, Tensor] = {}
        self.nodes: list[Node] = []

    def run(self) -> None:
        for node in self.graph.nodes:
            self._node(node)
            self.nodes.append(node)
        for tensor, name in zip(self.graph.outputs, self.graph.output_names, strict=True):
            if _is_legacy(tensor):
                self._as_uint8(tensor, name)
        self.graph.nodes = self.nodes

    def _node(self, node: Node) -> None:
        operands = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None and tensor.dtype == UINT8]
        if node.op in NATIVE or not all(map(_is_legacy, operands)):
            node.inputs = [self._as_uint8(t, node.name) if _is_legacy(t) else t for t in node.inputs]
            self.native.update(node.outputs)
            return
        node.inputs = [self._as_int8(t, node.name) if _is_legacy(t) else t for t in node.inputs]
        if node.op == "QUANTIZE" and _is_legacy(node.outputs[0]):
            node.attributes = dataclasses.replace(node.attributes, dtype=INT8)
        if node.op in LINEAR and _is_legacy(node.outputs[0]):
            self._linear(node, *LINEAR[node.op])
        node.outputs = [self._twin(t) if _is_legacy(t) else t for t in node.outputs]

    def _linear(self, node: Node, data: int, weights: int) -> None:
        """Weights without a zero point where int8 can hold them so; the multiplier of uint8 kernels."""
        kernel = node.inputs[weights]
        if kernel.quantization is None or node.inputs[data].quantization is None:
            return  # they do not fit together, as will be seen
        if kernel.is_constant and not kernel.quantization.per_channel:
            centred = kernel.value.astype(np.int16) - kernel.quantization.zero_point[0]
            if centred.min(initial=0) >= -OFFSET and centred.max(initial=0) < OFFSET:
                scale = kernel.quantization.scale
                node.inputs[weights] = Tensor.from_array(kernel.name, centred.astype(INT8), Quantization(scale))
        if node.op != "FULLY_CONNECTED":
            self._round_scales(node, data, weights)

    def _round_scales(self, node: Node, data: int, weights: int) -> None:
        """Convolutions of uint8, unlike those of int8, round the product of the two scales to float32
        (GetQuantizedConvolutionMultipler of kernel_util.cc): the weights get it, the input, as it is, a scale of 1.
        """
        x, kernel = node.inputs[data], node.inputs[weights]
        product = x.quantization.scale[0] * kernel.quantization.scale[0]
        if kernel.quantization.per_channel or not 0 < product < np.inf:
            return
        unscaled = Tensor(x.name, INT8, x.shape, Quantization(1.0, x.quantization.zero_point))
        self.nodes.append(Node("CAST", [x], [unscaled], ops.get("CAST").Attributes(INT8), node.name))  # type: ignore[misc]
        quantization = Quantization(product, kernel.quantization.zero_point)
        scaled = Tensor(kernel.name, INT8, kernel.shape, quantization, kernel.constant)
        node.inputs[data], node.inputs[weights] = unscaled, scaled

    def _twin(self, tensor: Tensor) -> Tensor:
        quantization = tensor.quantization
        shifted = Quantization(quantization.scale, quantization.zero_point - OFFSET, quantization.axis)
        twin = self.twins[tensor] = Tensor(tensor.name, INT8, tensor.shape, shifted)
        return twin

    def _as_int8(self, tensor: Tensor, name: str) -> Tensor:
        if tensor not in self.twins:
            twin = self._twin(tensor)
            if tensor.is_constant:
                twin.set_constant(Constant((tensor.value.astype(np.int16) - OFFSET).astype(INT8)))
            else:
                self._quantize(tensor, twin, name)
        return self.twins[tensor]

    def _as_uint8(self, tensor: Tensor, name: str) -> Tensor:
        if tensor not in self.native and not tensor.is_constant:
            self._quantize(self.twins[tensor], tensor, name)
            self.native.add(tensor)
        return tensor

    def _quantize(self, source: Tensor, target: Tensor, name: str) -> None:
        attributes = ops.get("QUANTIZE").Attributes(target.dtype)  # type: ignore[misc]
        self.nodes.append(Node("QUANTIZE", [source], [target], attributes, name))
