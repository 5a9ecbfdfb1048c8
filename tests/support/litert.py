"""One op as a `.tflite` file, run by LiteRT's reference kernels: the outside oracle of every op test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from schema import Quantization, TensorType
from tests.support.litert_options import DTYPES, VERSIONS, options_of

NO_REFERENCE_KERNEL = ("CEIL", "ELU", "ROUND", "LOCAL_RESPONSE_NORMALIZATION")
"""The reference resolver does not know them, or (the last) leaves a channel out that TensorFlow and its own usual
kernel have: these run on LiteRT's usual kernels, without delegates.
"""


@dataclass(frozen=True, eq=False)
class Operand:
    """An input of the op: its value, how it is quantized, and whether the file holds it as a constant."""

    value: np.ndarray
    quantization: Quantization | None = None
    constant: bool = False

    @property
    def type(self) -> TensorType:
        return TensorType(self.value.shape, self.value.dtype, self.quantization)


class LiteRTRefused(Exception):
    """LiteRT has no kernel for this op, dtype or option; the message is its own."""


def _quantization(quantization: Quantization | None) -> tfl.QuantizationParametersT | None:
    if quantization is None:
        return None
    table = tfl.QuantizationParametersT()
    table.scale, table.zeroPoint = quantization.scale, quantization.zero_point
    table.quantizedDimension = quantization.axis
    return table


def write(op: str, attributes: Any, inputs: Sequence[Operand | None], outputs: Sequence[TensorType]) -> bytes:
    """The `.tflite` file. The types of the outputs may have no shape: LiteRT computes it."""
    model, graph, operator, code = tfl.ModelT(), tfl.SubGraphT(), tfl.OperatorT(), tfl.OperatorCodeT()
    model.buffers, graph.tensors = [tfl.BufferT()], []

    def add(name: str, kind: TensorType, value: np.ndarray | None = None) -> int:
        tensor = tfl.TensorT()
        tensor.name, tensor.type, tensor.quantization = name, DTYPES[kind.dtype], _quantization(kind.quantization)
        tensor.shape = np.array(kind.shape or (), np.int32)
        if value is not None:
            tensor.buffer = len(model.buffers)
            buffer = tfl.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
            model.buffers.append(buffer)
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    operator.inputs = [
        -1 if o is None else add(f"input{i}", o.type, o.value if o.constant else None) for i, o in enumerate(inputs)
    ]
    operator.outputs = [add(f"output{i}", kind) for i, kind in enumerate(outputs)]
    shapes = [None if o is None else o.value.shape for o in inputs]
    operator.builtinOptionsType, operator.builtinOptions = options_of(op, attributes, shapes)
    last = inputs[-1]
    if last is not None and last.value.dtype == np.int32 and hasattr(operator.builtinOptions, "quantizedBiasType"):
        operator.builtinOptions.quantizedBiasType = tfl.TensorType.INT32
    graph.inputs = [i for i, o in zip(operator.inputs, inputs, strict=True) if o is not None and not o.constant]
    graph.outputs, graph.operators = operator.outputs, [operator]
    builtin = getattr(tfl.BuiltinOperator, op)
    code.builtinCode, code.deprecatedBuiltinCode, code.version = builtin, min(builtin, 127), VERSIONS.get(op, 1)
    model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(op: str, attributes: Any, inputs: Sequence[Operand | None], outputs: Sequence[TensorType]) -> list[np.ndarray]:
    """The outputs by LiteRT's reference resolver. Raises LiteRTRefused where it cannot."""
    content = write(op, attributes, inputs, outputs)
    resolver = (
        OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if op in NO_REFERENCE_KERNEL else OpResolverType.BUILTIN_REF
    )
    try:
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)
        interpreter.allocate_tensors()
        fed = [o for o in inputs if o is not None and not o.constant]
        for detail, operand in zip(interpreter.get_input_details(), fed, strict=True):
            interpreter.set_tensor(detail["index"], operand.value)
        interpreter.invoke()
    except (ValueError, RuntimeError) as error:
        raise LiteRTRefused(f"{op}: {error}") from error
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
