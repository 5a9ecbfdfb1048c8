"""`.tflite` files of any content, sound or not, written with LiteRT's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from schema import Quantization
from tests.support.litert_options import DTYPES


class FileBuilder:
    """Tensors and operators of one subgraph, number `index`; `model` is open to changes until `finish`."""

    def __init__(self, model: tfl.ModelT | None = None) -> None:
        if model is None:
            model = tfl.ModelT()
            model.version, model.subgraphs = 3, []
            model.buffers, model.operatorCodes = [tfl.BufferT()], []
        self.model, self.graph, self.index = model, tfl.SubGraphT(), len(model.subgraphs)
        self.model.subgraphs.append(self.graph)
        self.graph.tensors, self.graph.operators = [], []

    def subgraph(self) -> FileBuilder:
        """Another subgraph of the same file."""
        return FileBuilder(self.model)

    def tensor(
        self,
        dtype: Any,
        shape: Sequence[int],
        value: np.ndarray | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
        **fields: Any,
    ) -> int:
        """The index of a new tensor. fields: of the table, under the names that LiteRT's classes have."""
        tensor = tfl.TensorT()
        tensor.type = DTYPES[np.dtype(dtype)]
        tensor.shape = np.array(shape, np.int32)
        tensor.name = f"t{len(self.graph.tensors)}" if name is None else name
        if quantization is not None:
            table = tensor.quantization = tfl.QuantizationParametersT()
            table.scale, table.zeroPoint = quantization.scale, quantization.zero_point
            table.quantizedDimension = quantization.axis
        if value is not None:
            tensor.buffer = self.buffer(np.ascontiguousarray(value).tobytes())
        for field, given in fields.items():
            setattr(tensor, field, given)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, value: Any, dtype: Any = None, quantization: Quantization | None = None, **fields: Any) -> int:
        array = np.asarray(value, dtype)
        return self.tensor(array.dtype, array.shape, array, quantization, **fields)

    def buffer(self, data: bytes) -> int:
        buffer = tfl.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def operator(
        self,
        op: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Any = None,
        *,
        version: int = 1,
        custom: str | None = None,
        custom_options: bytes | None = None,
    ) -> Any:
        """options: a table of LiteRT's classes, such as tfl.ReshapeOptionsT()."""
        code, operator = tfl.OperatorCodeT(), tfl.OperatorT()
        code.builtinCode = getattr(tfl.BuiltinOperator, op)
        code.deprecatedBuiltinCode, code.version, code.customCode = min(code.builtinCode, 127), version, custom
        operator.opcodeIndex = len(self.model.operatorCodes)
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        if options is not None:
            operator.builtinOptions = options
            operator.builtinOptionsType = getattr(tfl.BuiltinOptions, type(options).__name__.removesuffix("T"))
        if custom_options is not None:
            operator.customOptions = np.frombuffer(custom_options, np.uint8)
        self.model.operatorCodes.append(code)
        self.graph.operators.append(operator)
        return operator

    def signature(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int], subgraph: int = 0) -> None:
        signature = tfl.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = name, subgraph
        for field, tensors in (("inputs", inputs), ("outputs", outputs)):
            maps = []
            for key, index in tensors.items():
                entry = tfl.TensorMapT()
                entry.name, entry.tensorIndex = key, index
                maps.append(entry)
            setattr(signature, field, maps)
        self.model.signatureDefs = [*(self.model.signatureDefs or []), signature]

    def ends(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.graph.inputs, self.graph.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        self.ends(inputs, outputs)
        return self.pack()

    def pack(self) -> bytes:
        builder = flatbuffers.Builder()
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
