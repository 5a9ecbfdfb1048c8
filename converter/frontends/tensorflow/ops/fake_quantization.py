"""Quantization-aware training's ranges: y = dequantize(quantize(x)).

A constant is rounded here. Anything else is quantized and dequantized, which both computes the right numbers and
tells the quantizer the range. TensorFlow's rule (tensorflow/core/kernels/fake_quant_ops_functor.h, Nudge): the range
is moved so that zero is one of the integers.
"""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.errors import UnsupportedError
from schema.graph import Tensor
from schema.quantization import Quantization

INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)


@reads("FakeQuantWithMinMaxArgs")
def fake_quant_args(reading: Reading) -> Result:
    return _fake_quant(reading, np.array(reading.attribute("min")), np.array(reading.attribute("max")))


@reads("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(reading: Reading) -> Result:
    return _fake_quant(reading, reading.value(1, "the range's lower end"), reading.value(2, "the range's upper end"))


def _fake_quant(reading: Reading, low: np.ndarray, high: np.ndarray) -> Result:
    x, bits, narrow = reading.tensor(0), reading.attribute("num_bits"), bool(reading.attribute("narrow_range"))
    if not 2 <= bits <= 8 and bits != 16:
        raise UnsupportedError(f"fake quantization to {bits} bits is not supported: 2 to 8 and 16 are")
    if not np.all(np.asarray(high) > np.asarray(low)):
        raise UnsupportedError("the quantization range is empty, it was never learned: train the model for some steps")
    first, last = int(narrow), 2**bits - 1
    scale, zero_point = _nudge(low, high, first, last)
    if x.is_constant:
        return reading.builder.constant(_rounded(x, scale, zero_point, first, last), reading.name)
    shift = 2 ** (bits - 1)  # signed integers
    if bits == 16:
        return _int16(reading, x, scale, zero_point - shift)
    bottom, top = (first - zero_point) * scale, (last - zero_point) * scale
    if (first, last) != (0, 255):
        x = reading.emit("MAXIMUM", x, reading.constant(bottom, np.float32))
        x = reading.emit("MINIMUM", x, reading.constant(top, np.float32))
    quantized = reading.emit("QUANTIZE", x, dtype=INT8)
    quantized.quantization = Quantization(scale, zero_point - shift, max(reading.rank(x) - 1, 0))
    reading.builder.inference.types[quantized] = quantized.type
    return reading.emit("DEQUANTIZE", quantized)


def _int16(reading: Reading, x: Tensor, scale: np.ndarray, zero_point: np.ndarray) -> Result:
    if zero_point.any():
        raise UnsupportedError("ranges of 16 bits have to be symmetric: from -m to m")
    quantized = reading.emit("QUANTIZE", x, dtype=INT16)
    quantized.quantization = Quantization(scale, zero_point, max(reading.rank(x) - 1, 0))
    reading.builder.inference.types[quantized] = quantized.type
    return reading.emit("DEQUANTIZE", quantized)


def _nudge(low: np.ndarray, high: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """(scale, zero point) of the range, zero being an integer from `first` to `last`. Float32, as symmetric ranges
    are ties.
    """
    low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
    scale = (high - low) / np.float32(last - first)
    zero_point = np.clip(np.floor(np.float32(first) - low / scale + np.float32(0.5)), first, last)
    return scale.astype(np.float64), zero_point.astype(np.int64)


def _rounded(x: Tensor, scale: np.ndarray, zero_point: np.ndarray, first: int, last: int) -> np.ndarray:
    assert x.value is not None
    bottom, top = (first - zero_point) * scale, (last - zero_point) * scale
    steps = np.floor((np.clip(x.value.astype(np.float64), bottom, top) - bottom) / scale + 0.5)
    return (steps * scale + bottom).astype(np.float32)
