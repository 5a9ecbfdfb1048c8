"""Between real numbers, integers that stand for them, and other dtypes."""

from __future__ import annotations

from converter.frontends.tflite.dequantized import dequantized
from converter.frontends.tflite.reading import Reading, reads
from schema.errors import UnsupportedError


@reads("QUANTIZE")
def quantize(reading: Reading) -> None:
    reading.emit("QUANTIZE", reading.operands(1), dtype=reading.output().dtype)


@reads("DEQUANTIZE")
def dequantize(reading: Reading) -> None:
    (x,) = reading.operands(1)
    if x.is_constant and x.dtype != reading.output().dtype:
        reading.output().set_constant(dequantized(x))
    else:
        reading.emit("DEQUANTIZE", [x])


@reads("DENSIFY")
def densify(reading: Reading) -> None:
    """Sparse constants are dense as soon as they are read."""
    (x,) = reading.operands(1)
    if not x.is_constant:
        raise UnsupportedError("sparse tensors that are computed are not supported")
    reading.output().set_constant(x.constant)


@reads("CAST", options="CastOptions")
def cast(reading: Reading) -> None:
    reading.emit("CAST", reading.operands(1), dtype=reading.output().dtype)
