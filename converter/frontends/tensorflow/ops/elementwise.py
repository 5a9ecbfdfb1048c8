"""Ops that work element by element."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.errors import UnsupportedError

UNARY = {
    "Abs": "ABS",
    "Neg": "NEG",
    "Sign": "SIGN",
    "Exp": "EXP",
    "Expm1": "EXPM1",
    "Log": "LOG",
    "Log1p": "LOG1P",
    "Sqrt": "SQRT",
    "Rsqrt": "RSQRT",
    "Square": "SQUARE",
    "Reciprocal": "RECIPROCAL",
    "Inv": "RECIPROCAL",
    "Sin": "SIN",
    "Cos": "COS",
    "Erf": "ERF",
    "Floor": "FLOOR",
    "Ceil": "CEIL",
    "Round": "ROUND",
    "Rint": "ROUND",
    "LogicalNot": "LOGICAL_NOT",
}
BINARY = {
    "Add": "ADD",
    "AddV2": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "RealDiv": "DIV",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "SquaredDifference": "SQUARED_DIFFERENCE",
    "Pow": "POW",
    "FloorDiv": "FLOOR_DIV",
    "FloorMod": "FLOOR_MOD",
    "Equal": "EQUAL",
    "NotEqual": "NOT_EQUAL",
    "Greater": "GREATER",
    "GreaterEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessEqual": "LESS_EQUAL",
    "LogicalAnd": "LOGICAL_AND",
    "LogicalOr": "LOGICAL_OR",
}


@reads(*UNARY)
def unary(reading: Reading) -> Result:
    return reading.emit(UNARY[reading.node.op], reading.tensor(0))


@reads(*BINARY)
def binary(reading: Reading) -> Result:
    return reading.emit(BINARY[reading.node.op], reading.tensor(0), reading.tensor(1))


@reads("Div")
def div(reading: Reading) -> Result:
    a, b = reading.tensors()
    if a.dtype.kind != "f":
        raise UnsupportedError("integer division that rounds towards zero is not supported; use floor division")
    return reading.emit("DIV", a, b)


@reads("DivNoNan", "MulNoNan")
def no_nan(reading: Reading) -> Result:
    """0 wherever the second operand is 0, whatever the first one is."""
    a, b = reading.tensors()
    zero = reading.constant(0, a.dtype)
    result = reading.emit("MUL" if reading.node.op == "MulNoNan" else "DIV", a, b)
    return reading.emit("SELECT_V2", reading.emit("EQUAL", b, zero), zero, result)


@reads("AddN")
def add_n(reading: Reading) -> Result:
    first, *others = reading.tensors()
    for other in others:
        first = reading.emit("ADD", first, other)
    return first


@reads("BiasAdd")
def bias_add(reading: Reading) -> Result:
    x, bias = reading.tensors()
    if reading.is_channels_first():
        rank = reading.rank(x)
        shape = [-1 if axis == 1 else 1 for axis in range(rank)]
        bias = reading.emit("RESHAPE", bias, reading.constant(shape, np.int32))
    return reading.emit("ADD", x, bias)


@reads("Erfc")
def erfc(reading: Reading) -> Result:
    one = reading.constant(1, reading.tensor(0).dtype)
    return reading.emit("SUB", one, reading.emit("ERF", reading.tensor(0)))


@reads("Tan")
def tan(reading: Reading) -> Result:
    return reading.emit("DIV", reading.emit("SIN", reading.tensor(0)), reading.emit("COS", reading.tensor(0)))


@reads("LogicalXor")
def logical_xor(reading: Reading) -> Result:
    a, b = reading.tensors()
    either = reading.emit("LOGICAL_OR", a, b)
    return reading.emit("LOGICAL_AND", either, reading.emit("LOGICAL_NOT", reading.emit("LOGICAL_AND", a, b)))


@reads("IsNan")
def is_nan(reading: Reading) -> Result:
    return reading.emit("NOT_EQUAL", reading.tensor(0), reading.tensor(0))


@reads("IsFinite")
def is_finite(reading: Reading) -> Result:
    """Of the rest, infinities and NaN, none is 0 after it is subtracted from itself."""
    x = reading.tensor(0)
    return reading.emit("EQUAL", reading.emit("SUB", x, x), reading.constant(0, x.dtype))


@reads("ClipByValue")
def clip_by_value(reading: Reading) -> Result:
    x, low, high = reading.tensors()
    return reading.emit("MAXIMUM", reading.emit("MINIMUM", x, high), low)


@reads("SelectV2")
def select_v2(reading: Reading) -> Result:
    return reading.emit("SELECT_V2", *reading.tensors())


@reads("Select")
def select(reading: Reading) -> Result:
    """A condition with one axis, where the others have several, chooses whole slices."""
    condition, a, b = reading.tensors()
    rank = reading.rank(a)
    if reading.rank(condition) == 1 and rank > 1:
        condition = reading.emit("RESHAPE", condition, reading.constant([-1] + [1] * (rank - 1), np.int32))
    return reading.emit("SELECT_V2", condition, a, b)
