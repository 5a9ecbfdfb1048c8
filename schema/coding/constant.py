"""A constant to streams and back: `indices -> codebook x channel scale`, dense or sparse, whichever takes fewest bytes.

Zero, here, is the pattern of bits that are all 0: -0.0 is a value like any other, so that what is read is what was
written, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from schema.coding import codecs, prediction
from schema.coding.bitpack import bits_for
from schema.coding.streams import EncodedConstant, Stream
from schema.errors import FormatError
from schema.graph import Constant, IndexedConstant

MAX_CODEBOOK = 1 << 16
STREAM_OVERHEAD = (
    32  # bytes of metadata that one more stream costs: its table in the FlatBuffer and the reference to it
)
PREDICTION_OVERHEAD = 8  # and a factor with the tensor that it is for
MAX_EXPANSION = 1024
"""Bytes of values that a byte of a file may stand for: what little says much is stored in more bytes than it needs."""
SAMPLE = 1 << 14  # elements by which a large tensor is judged, and from which on it is one

NARROWER = {"float64": ("float16", "float32"), "float32": ("float16",), "int64": ("int8", "int16", "int32"),
            "int32": ("int8", "int16"), "int16": ("int8",)}  # fmt: skip


def encode(constant: Constant, dtype: np.dtype, kernel: Constant | None = None) -> EncodedConstant:
    """The smallest streams of a constant of a tensor of that dtype.

    kernel: of biases, the weights beside them.
    `decode` gives a constant whose `dense(dtype)` is the same to the bit. The values come back as they are, or in a
    narrower dtype that holds them exactly, or multiplied by their channel scale where that is smaller.
    """
    encoded = min(_candidates(constant, np.dtype(dtype)), key=size)
    if kernel is None or not prediction.can_predict(kernel, np.size(constant.values)):
        return encoded
    return min([encoded, *_predicted(encoded, kernel)], key=size)


def size(encoded: EncodedConstant) -> int:
    """Bytes that the streams take in a file, their metadata included."""
    factors = (encoded.factor != 0) + (encoded.scale_factor != 0)
    return sum(len(stream.data) + STREAM_OVERHEAD for _, stream in encoded.streams()) + PREDICTION_OVERHEAD * factors


def decode(
    encoded: EncodedConstant, shape: tuple[int, ...], dtype: np.dtype, kernel: Constant | None = None
) -> Constant:
    """The constant of a tensor of that shape and dtype.

    kernel: the weights from which values are expected, where they are.
    Raises FormatError for streams that do not fit the shape. What is allocated is a small multiple of the tensor.
    """
    _check_dtypes(encoded, np.dtype(dtype))
    count = math.prod(shape)
    expected = None
    if encoded.factor:
        if encoded.codebook is not None or encoded.positions is not None:
            raise FormatError("values that are expected, but by a codebook or positions")
        if kernel is None or not prediction.can_predict(kernel, count):
            raise FormatError(f"{count} values are expected from a tensor that is no kernel of so many channels")
        expected = prediction.of_biases(kernel, encoded.factor)
    if encoded.positions is None:
        if encoded.nonzeros:
            raise FormatError(f"{encoded.nonzeros} non-zero values, but no positions")
        numbers, codebook = _decode_values(encoded, count, expected)
    else:
        numbers, codebook = _decode_sparse(encoded, count)
    if codebook is not None and count < SAMPLE:
        numbers, codebook = codebook[numbers], None
    values, scale = numbers.reshape(shape), None
    if encoded.channel_scale is not None:
        if not 0 <= encoded.axis < len(shape):
            raise FormatError(f"a channel scale along axis {encoded.axis} of shape {shape}")
        expected = None
        if encoded.scale_factor:
            whole = values if codebook is None else codebook[values]
            expected = prediction.of_scales(whole, encoded.axis, encoded.scale_factor)
        scale = codecs.decode(encoded.channel_scale, np.dtype(np.float32), shape[encoded.axis], expected)
    if codebook is not None:
        return IndexedConstant(values, codebook, scale, encoded.axis)
    return Constant(values, scale, encoded.axis)


def _candidates(constant: Constant, dtype: np.dtype) -> Iterator[EncodedConstant]:
    if constant.channel_scale is None:
        yield from _encodings(_narrow(np.asarray(constant.values)))
        return
    if dtype.kind == "f":
        scale, factor = _encode_scale(constant)
        for encoded in _encodings(_narrow(np.asarray(constant.values))):
            yield replace(encoded, channel_scale=scale, axis=constant.axis, scale_factor=factor)
    yield from _encodings(_narrow(constant.dense(dtype)))


def _encode_scale(constant: Constant) -> tuple[Stream, float]:
    """The smallest stream of the channel scales, and the factor by which they are expected from the values, or 0."""
    scale, values = np.asarray(constant.channel_scale, np.float32), np.asarray(constant.values)
    plain, found = codecs.encode(scale), codecs.steps(scale)
    values = _narrow(values).reshape(values.shape)
    if found is None or not prediction.is_of_integers(values):
        return plain, 0.0
    factor = prediction.fit_scales(found[0], values, constant.axis)
    if not factor:
        return plain, 0.0
    stream = codecs.encode_differences(*found, prediction.of_scales(values, constant.axis, factor))
    return (stream, factor) if len(stream.data) + PREDICTION_OVERHEAD < len(plain.data) else (plain, 0.0)


def _predicted(encoded: EncodedConstant, kernel: Constant) -> Iterator[EncodedConstant]:
    """Biases that are stored as multiples of a step, by differences to what their weights let expect."""
    if not encoded.values.step or encoded.positions is not None:
        return
    floats = codecs.decode(encoded.values, encoded.dtype, kernel.values.shape[kernel.axis])
    found = codecs.steps(floats)
    assert found is not None
    factor = prediction.fit_biases(found[0], kernel)
    if factor:
        stream = codecs.encode_differences(*found, prediction.of_biases(kernel, factor))
        yield replace(encoded, values=stream, factor=factor)


def _narrow(values: np.ndarray) -> np.ndarray:
    """The values, 1-D, in the narrowest dtype that gives every one of them back to the bit."""
    flat = np.ravel(values)
    if flat.dtype.kind == "i" and flat.size:
        low, high = int(flat.min()), int(flat.max())
        for name in NARROWER.get(flat.dtype.name, ()):
            if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
                return flat.astype(name)
    elif flat.dtype.kind == "f":
        for name in NARROWER.get(flat.dtype.name, ()):
            if _exact(flat[:SAMPLE], name) and _exact(flat, name):
                return flat.astype(name)
    return flat


def _exact(flat: np.ndarray, name: str) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        back = flat.astype(name).astype(flat.dtype)
    return np.array_equal(_patterns(back), _patterns(flat))


def _patterns(flat: np.ndarray) -> np.ndarray:
    """The numbers' bits as unsigned integers, so that -0.0, 0.0 and each NaN differ."""
    return np.ascontiguousarray(flat).view(f"u{flat.dtype.itemsize}")


def _encodings(flat: np.ndarray) -> Iterator[EncodedConstant]:
    """Each way to store these values without a channel scale, the simplest first."""
    patterns = _patterns(flat)
    yield EncodedConstant(flat.dtype, codecs.encode(flat, _least(flat)))
    distinct = _distinct(patterns)
    if distinct is not None and bits_for(distinct.size - 1) < 8 * flat.itemsize:
        yield _with_codebook(flat.dtype, patterns, distinct, _least(flat))
    occupied = patterns != 0
    nonzeros = int(np.count_nonzero(occupied))
    zeros = flat.size - nonzeros
    if zeros == 0 or (distinct is None and 8 * zeros * flat.itemsize <= flat.size):
        return  # one bit for each position would be more than the zeros are worth
    if distinct is not None and distinct.size <= 256 and flat.size > SAMPLE and 2 * zeros < flat.size:
        return  # entropy coding knows how often zero is; apart, positions pay where other values are rare
    positions = codecs.encode(occupied, _least(flat))
    yield EncodedConstant(flat.dtype, codecs.encode(flat[occupied]), positions=positions, nonzeros=nonzeros)
    if distinct is not None and nonzeros and bits_for(distinct.size - 2) < 8 * flat.itemsize:
        encoded = _with_codebook(flat.dtype, patterns[occupied], distinct[distinct != 0])
        yield replace(encoded, positions=positions, nonzeros=nonzeros)


def _distinct(patterns: np.ndarray) -> np.ndarray | None:
    """The distinct patterns in ascending order, None where there are more than a codebook may have (or none)."""
    if patterns.size == 0:
        return None
    if patterns.itemsize <= 2:
        seen = np.zeros(1 << 8 * patterns.itemsize, bool)
        seen[patterns] = True
        return np.flatnonzero(seen).astype(patterns.dtype)
    if patterns.size > SAMPLE:
        sample = patterns[:: patterns.size // SAMPLE]
        sample = sample[sample != 0]
        # Drawn from MAX_CODEBOOK values or fewer, size**2 / (2 * MAX_CODEBOOK) of them are expected to be repeated.
        if sample.size - _sorted_set(sample).size < sample.size**2 // (8 * MAX_CODEBOOK):
            return None
    distinct = _sorted_set(patterns)
    return distinct if distinct.size <= MAX_CODEBOOK else None


def _sorted_set(numbers: np.ndarray) -> np.ndarray:
    # numpy 2.4's own `unique` hashes, which took 200 times as long on 4 million numbers.
    ordered = np.sort(numbers)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if ordered.size else ordered


def _least(flat: np.ndarray) -> int:
    """The fewest bytes that a stream which has something for each of these values may take."""
    return -(-flat.nbytes // MAX_EXPANSION)


def _with_codebook(dtype: np.dtype, patterns: np.ndarray, distinct: np.ndarray, at_least: int = 0) -> EncodedConstant:
    indices = _indices(patterns, distinct)
    if distinct.size <= 256:  # the commonest first: then few bytes say how often each occurs
        order = np.argsort(-np.bincount(indices, minlength=distinct.size), kind="stable")
        distinct = distinct[order]
        indices = np.argsort(order).astype(indices.dtype)[indices]
    codebook = codecs.CODECS["RAW"].encode(distinct.view(dtype))
    return EncodedConstant(dtype, codecs.encode(indices, at_least), codebook=codebook)


def _indices(patterns: np.ndarray, distinct: np.ndarray) -> np.ndarray:
    """Where each pattern is among the distinct ones, which are in ascending order."""
    entry = _index_dtype(distinct.size)
    if patterns.itemsize > 2:
        return np.searchsorted(distinct, patterns).astype(entry)
    table = np.zeros(1 << 8 * patterns.itemsize, entry)
    table[distinct] = np.arange(distinct.size)
    return table[patterns]


def _index_dtype(entries: int) -> np.dtype:
    return np.dtype(np.uint8 if entries <= 256 else np.uint16)


def _decode_sparse(encoded: EncodedConstant, count: int) -> tuple[np.ndarray, np.ndarray | None]:
    """As `_decode_values`, zeros among them."""
    assert encoded.positions is not None
    if encoded.nonzeros > count:
        raise FormatError(f"{encoded.nonzeros} non-zero values of {count}")
    occupied = codecs.decode(encoded.positions, np.dtype(bool), count)
    found = int(np.count_nonzero(occupied))
    if found != encoded.nonzeros:
        raise FormatError(f"{found} positions for {encoded.nonzeros} non-zero values")
    stored, codebook = _decode_values(encoded, found)
    if codebook is not None and codebook.size < 256:
        stored, codebook = stored + 1, np.concatenate([np.zeros(1, codebook.dtype), codebook])
    elif codebook is not None:
        stored, codebook = codebook[stored], None
    numbers = np.zeros(count, stored.dtype)
    numbers[occupied] = stored
    return numbers, codebook


def _decode_values(
    encoded: EncodedConstant, count: int, expected: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """(values, None) or (indices, the codebook)."""
    if encoded.codebook is None:
        return codecs.decode(encoded.values, encoded.dtype, count, expected), None
    codebook = _decode_codebook(encoded.codebook, encoded.dtype)
    indices = codecs.decode(encoded.values, _index_dtype(codebook.size), count)
    if count and int(indices.max()) >= codebook.size:
        raise FormatError(f"index {indices.max()} into a codebook of {codebook.size}")
    return indices, codebook


def _decode_codebook(stream: Stream, dtype: np.dtype) -> np.ndarray:
    if stream.coding != "RAW" or stream.step:
        raise FormatError(f"a codebook of coding {stream.coding}, step {stream.step}: it is RAW, without")
    entries, rest = divmod(len(stream.data), dtype.itemsize)
    if rest or not 1 <= entries <= MAX_CODEBOOK:
        raise FormatError(f"a codebook of {len(stream.data)} bytes of {dtype}")
    return codecs.decode(stream, dtype, entries)


def _check_dtypes(encoded: EncodedConstant, dtype: np.dtype) -> None:
    if encoded.channel_scale is not None:
        if dtype.kind != "f" or encoded.dtype.kind not in "fiu":
            raise FormatError(f"{encoded.dtype} with a channel scale for a tensor of {dtype}")
    elif not np.can_cast(encoded.dtype, dtype, "safe"):
        raise FormatError(f"values of {encoded.dtype} for a tensor of {dtype}")
