"""Functions of one number, and sums, that the schema spells otherwise."""

from __future__ import annotations

import numpy as np

from converter.frontends.tflite.reading import Reading, reads
from schema import fixedpoint
from schema.errors import UnsupportedError
from schema.graph import Tensor

INT32 = np.dtype(np.int32)


@reads("ADD", options="AddOptions")
def add(reading: Reading) -> None:
    _sum(reading, "ADD")


@reads("SUB", options="SubOptions")
def sub(reading: Reading) -> None:
    _sum(reading, "SUB")


def _sum(reading: Reading, op: str) -> None:
    operands = reading.operands(2)
    tensors = [tensor for tensor in (*operands, reading.output()) if tensor is not None]
    if reading.options["pot_scale_int16"] and all(map(_is_power_of_two, tensors)):
        raise UnsupportedError("sums of int16 whose scales are powers of two have kernels of their own: not supported")
    reading.emit(op, operands, **reading.activation())


@reads("FLOOR_DIV")
def floor_div(reading: Reading) -> None:
    _of_plain_integers(reading, "FLOOR_DIV")


@reads("FLOOR_MOD")
def floor_mod(reading: Reading) -> None:
    _of_plain_integers(reading, "FLOOR_MOD")


def _of_plain_integers(reading: Reading, op: str) -> None:
    """TFLite's kernels of int8 and int16 divide the integers, whatever their scales."""
    operands, output = reading.operands(2), reading.output()
    if output.dtype not in (np.int8, np.int16):
        reading.emit(op, operands)
        return
    wide = [reading.intermediate("CAST", [tensor], INT32, dtype=INT32) for tensor in operands]
    result = reading.intermediate(op, wide, INT32)
    reading.emit("CAST", [result], [output], dtype=output.dtype)


def _is_power_of_two(tensor: Tensor) -> bool:
    """Whether it is an int16 tensor of such a scale, or of one that TFLite takes for such."""
    if tensor.dtype != np.int16 or tensor.quantization is None:
        return False
    return all(fixedpoint.power_of_two(scale) is not None for scale in tensor.quantization.scale)


@reads("ELU")
def elu(reading: Reading) -> None:
    reading.emit("ELU", reading.operands(1), alpha=1.0)


@reads("RELU_0_TO_1")
def relu_0_to_1(reading: Reading) -> None:
    reading.emit("CLAMP", reading.operands(1), min=0.0, max=1.0)


@reads("LOG_SOFTMAX")
def log_softmax(reading: Reading) -> None:
    reading.emit("LOG_SOFTMAX", reading.operands(1))


@reads("L2_NORMALIZATION", options="L2NormOptions")
def l2_normalization(reading: Reading) -> None:
    reading.no_activation()
    reading.emit("L2_NORMALIZATION", reading.operands(1))


@reads("ADD_N")
def add_n(reading: Reading) -> None:
    """Summed from the first to the last."""
    *terms, last = reading.operands(len(reading.inputs))
    if not terms:
        reading.emit("CAST", [last], dtype=last.dtype)
        return
    total = terms[0]
    for term in terms[1:]:
        total = reading.intermediate("ADD", [total, term], last.dtype)
    reading.emit("ADD", [total, last])


@reads("ZEROS_LIKE")
def zeros_like(reading: Reading) -> None:
    shape = reading.intermediate("SHAPE", reading.operands(1), INT32, dtype=INT32)
    reading.emit("FILL", [shape, reading.constant(0, reading.output().dtype)])
