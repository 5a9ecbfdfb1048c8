from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schema
import schema.ops.attributes
from schema import Constant, FormatError
from schema.coding import codecs
from schema.coding.constant import MAX_EXPANSION, decode, encode, size
from schema.coding.streams import EncodedConstant, Stream
from schema.graph import IndexedConstant
from tests.support.drawing import generators, shapes

FLOAT = np.dtype(np.float32)


def stored_bytes(encoded):
    return sum(len(stream.data) for _, stream in encoded.streams())


def round_trip(constant, dtype):
    """Encode, decode and compare to the bit; returns the encoding."""
    encoded = encode(constant, dtype)
    views = {name: replace(stream, data=memoryview(stream.data)) for name, stream in encoded.streams()}
    back = decode(replace(encoded, **views), np.shape(constant.values), dtype)
    assert back.dense(dtype).dtype == dtype
    assert back.dense(dtype).shape == constant.dense(dtype).shape
    assert back.dense(dtype).tobytes() == constant.dense(dtype).tobytes()
    return encoded


def draw_values(data, dtype, shape):
    """Dense or sparse, of many or few distinct values, infinities, negative zeros and NaNs with payloads among them."""
    rng = data.draw(generators)
    distinct = data.draw(st.sampled_from([1, 2, 3, 16, 17, 256, 300, 100_000]))
    kept = data.draw(st.sampled_from([1.0, 0.9, 0.5, 0.1, 0.0]))
    if data.draw(st.booleans()) and dtype.kind != "b":
        codebook = np.frombuffer(rng.bytes(distinct * dtype.itemsize), dtype)  # any pattern of bits
    else:
        codebook = (rng.normal(size=distinct) * 100).astype(dtype)
        if dtype.kind == "f":
            codebook[:1] = -0.0
    values = codebook[rng.integers(0, distinct, shape)]
    return np.where(rng.random(shape) < kept, values, np.zeros((), dtype))


@given(st.data())
def test_round_trip_to_the_bit(data):
    dtype = np.dtype(data.draw(st.sampled_from("float16 float32 float64 int8 uint8 int16 int32 int64 bool".split())))
    shape = data.draw(st.one_of(shapes(0, 4, 0, 7), st.just((40, 50))))
    values = draw_values(data, dtype, shape)
    encoded = round_trip(Constant(values), dtype)
    assert stored_bytes(encoded) <= values.nbytes
    assert size(encoded) <= values.nbytes + 32


@given(st.data())
def test_round_trip_with_a_channel_scale(data):
    dtype = np.dtype(data.draw(st.sampled_from(["float16", "float32"])))
    values_dtype = np.dtype(data.draw(st.sampled_from(["float16", "float32", "int8"])))
    shape = data.draw(st.one_of(shapes(1, 4, 1, 7), st.just((40, 50))))
    axis = data.draw(st.integers(0, len(shape) - 1))
    scale = np.random.default_rng(3).normal(size=shape[axis]).astype(np.float32)
    with np.errstate(all="ignore"):
        round_trip(Constant(draw_values(data, values_dtype, shape), scale, axis), dtype)


def test_float16_and_int8_may_stand_for_float32():
    values = np.linspace(-1, 1, 2000).astype(np.float16)
    encoded = round_trip(Constant(values), FLOAT)
    assert encoded.dtype == np.float16
    assert stored_bytes(encoded) == 4000


def test_a_small_bias_stays_as_it_is():
    encoded = round_trip(Constant(np.array([0.1, 0.2, 0.3], np.float32)), FLOAT)
    assert [(name, len(stream.data), stream.coding) for name, stream in encoded.streams()] == [("values", 12, "RAW")]


@pytest.mark.parametrize(
    ("distinct", "kept", "expected"),
    [
        (None, 1.0, 40_000),  # dense
        (None, 0.1, 10_000 // 8 + 1000 * 4),  # bitmap of positions, float32 values
        (16, 1.0, 10_000 * 4 // 8 + 16 * 4),  # 4-bit indices
        (16, 0.1, 10_000 // 8 + 1000 * 4 // 8 + 16 * 4),  # bitmap, 4-bit indices
        (16, 0.9, 10_000 * 5 // 8 + 17 * 4),  # nine in ten: zero is one of 17 values
        (15, 0.9, 10_000 * 4 // 8 + 16 * 4),  # zero is the 16th value
        (2, 1.0, 10_000 // 8 + 8),
    ],
)
def test_the_smallest_is_kept(distinct, kept, expected, rng):
    values = np.zeros(10_000, np.float32)
    count = int(10_000 * kept)
    codebook = rng.uniform(1, 2, distinct or count).astype(np.float32)
    values[rng.permutation(10_000)[:count]] = np.resize(codebook, count)
    encoded = round_trip(Constant(values.reshape(100, 100)), FLOAT)
    assert stored_bytes(encoded) <= expected


def test_int8_weights_of_few_bits(rng):
    values = rng.integers(-7, 8, (64, 64)).astype(np.int8)
    assert stored_bytes(round_trip(Constant(values), values.dtype)) <= 64 * 64 // 2 + 15
    values = np.where(rng.random((64, 64)) < 0.9, np.int8(0), rng.integers(-127, 128, (64, 64)).astype(np.int8))
    assert stored_bytes(round_trip(Constant(values), values.dtype)) <= 64 * 64 // 8 + np.count_nonzero(values)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_many_zeros_are_never_more_than_a_reader_takes(dtype):
    encoded = round_trip(Constant(np.zeros((2000, 1000), dtype)), np.dtype(dtype))
    assert 2_000_000 * np.dtype(dtype).itemsize // MAX_EXPANSION <= stored_bytes(encoded) <= 2_000_000 // 8


def test_commonest_values_come_first_in_a_codebook(rng):
    values = rng.choice([1.5, -2.0, 0.1, 7.0], 4000, p=[0.1, 0.6, 0.05, 0.25]).astype(np.float32)
    encoded = round_trip(Constant(values), FLOAT)
    np.testing.assert_array_equal(np.frombuffer(encoded.codebook.data, np.float32), np.float32([-2.0, 7.0, 1.5, 0.1]))


def test_wide_integers_are_narrowed(rng):
    bias = rng.integers(-30_000, 30_000, 500).astype(np.int32)
    assert stored_bytes(round_trip(Constant(bias), bias.dtype)) == 1000
    assert stored_bytes(round_trip(Constant(np.array([-1, 128], np.int64)), np.dtype(np.int64))) == 4


def test_a_channel_scale_keeps_a_codebook(rng):
    values = rng.normal(size=16).astype(np.float32)[rng.integers(0, 16, (32, 3, 3, 64))]
    encoded = round_trip(Constant(values, rng.uniform(0.5, 2, 32).astype(np.float32)), FLOAT)
    assert encoded.channel_scale is not None
    assert stored_bytes(encoded) == values.size // 2 + 16 * 4 + 32 * 4


def test_a_channel_scale_is_baked_in_where_that_is_smaller(rng):
    values = rng.normal(size=(32, 3, 3, 8)).astype(np.float32)
    encoded = round_trip(Constant(values, rng.uniform(0.5, 2, 32).astype(np.float32)), FLOAT)
    assert encoded.channel_scale is None
    assert stored_bytes(encoded) == values.nbytes


def test_negative_zero_is_a_value_and_not_a_zero():
    values = np.array([0.0, -0.0] * 2000, np.float32)
    assert np.signbit(decode(encode(Constant(values), FLOAT), (4000,), FLOAT).values).tolist() == [False, True] * 2000


def test_a_file_never_grows(rng):
    """The whole file, metadata included, against one that stores the same tensors raw."""
    for shape, distinct in (((4,), 2), ((9,), 3), ((20,), 1), ((30,), 2), ((40,), 2), ((200,), 16), ((64, 64), 16)):
        codebook = rng.normal(size=distinct).astype(np.float32)
        plain = schema.write(model_of(rng.normal(size=shape).astype(np.float32)))
        coded = schema.write(model_of(codebook[rng.integers(0, distinct, shape)]))
        assert len(coded) <= len(plain)


def model_of(values):
    x, y = (schema.Tensor(name, FLOAT, np.shape(values)) for name in "xy")
    add = schema.ops.attributes.ArithmeticAttributes()
    node = schema.Node("ADD", [x, schema.Tensor.from_array("w", values)], [y], add, "add")
    return schema.Model([schema.Graph([node], [x], ["x"], [y], ["y"])])


SPARSE = EncodedConstant(
    FLOAT, Stream(np.ones(2, np.float32).tobytes()), positions=Stream(b"\x05", "PACKED", 1), nonzeros=2
)
BOOK = EncodedConstant(FLOAT, Stream(b"\x24", "PACKED", 2), codebook=Stream(np.arange(3, dtype=np.float32).tobytes()))
SCALED = EncodedConstant(np.dtype(np.int8), Stream(bytes(4)), channel_scale=Stream(bytes(8)), axis=1)


@pytest.mark.parametrize(
    ("encoded", "shape"),
    [
        (SPARSE, (8,)),
        (BOOK, (4,)),
        (SCALED, (2, 2)),
    ],
)
def test_what_the_hostile_streams_start_from_is_sound(encoded, shape):
    decode(encoded, shape, FLOAT)


@pytest.mark.parametrize(
    ("encoded", "shape"),
    [
        (SPARSE, (9,)),
        (SPARSE, (1 << 40, 1 << 40)),
        (replace(SPARSE, nonzeros=3), (8,)),
        (replace(SPARSE, nonzeros=9), (8,)),
        (replace(SPARSE, nonzeros=1 << 63), (8,)),
        (replace(SPARSE, positions=None), (2,)),
        (replace(SPARSE, positions=Stream(b"\x07", "PACKED", 1), nonzeros=3), (8,)),
        (replace(SPARSE, positions=Stream(b"\x05", "PACKED", 2)), (8,)),
        (replace(SPARSE, positions=Stream(b"\x85", "PACKED", 1), nonzeros=3), (7,)),
        (replace(BOOK, values=Stream(b"\xe4", "PACKED", 2)), (4,)),
        (replace(BOOK, values=Stream(b"\x24" * 8, "PACKED", 16)), (4,)),
        (replace(BOOK, values=Stream(b"\x24", "PACKED", 0)), (4,)),
        (replace(BOOK, codebook=Stream(b"")), (4,)),
        (replace(BOOK, codebook=Stream(bytes(5))), (4,)),
        (replace(BOOK, codebook=Stream(bytes(4 * 65537))), (4,)),
        (replace(BOOK, codebook=Stream(bytes(4), "PACKED", 8)), (4,)),
        (replace(BOOK, codebook=Stream(bytes(4), step=1.0)), (4,)),
        (replace(SCALED, axis=2), (2, 2)),
        (replace(SCALED, axis=-1), (2, 2)),
        (SCALED, (1, 4)),
        (replace(SCALED, dtype=np.dtype(bool)), (2, 2)),
        (EncodedConstant(np.dtype(np.float64), Stream(bytes(8))), (1,)),
        (EncodedConstant(np.dtype(np.int32), Stream(bytes(4))), (1,)),
        (EncodedConstant(FLOAT, Stream(bytes(4), "PACKED", 8)), (4,)),
    ],
)
def test_hostile_streams(encoded, shape):
    with pytest.raises(FormatError):
        decode(encoded, shape, FLOAT)


@given(st.data())
def test_mutated_streams_decode_or_are_refused(data):
    values = draw_values(data, FLOAT, (20,))
    encoded = encode(Constant(values, np.ones(20, np.float32)), FLOAT)
    names = [name for name, _ in encoded.streams()]
    name = data.draw(st.sampled_from(names))
    stream = getattr(encoded, name)
    changed = Stream(
        data.draw(st.one_of(st.just(stream.data), st.binary(max_size=90))),
        data.draw(st.sampled_from(list(codecs.CODECS))),
        data.draw(st.integers(0, 255)),
    )
    encoded = replace(encoded, **{name: changed}, nonzeros=data.draw(st.sampled_from([encoded.nonzeros, 0, 20, 21])))
    try:
        constant = decode(encoded, (20,), FLOAT)
    except FormatError:
        return
    with np.errstate(all="ignore"):
        assert constant.dense(FLOAT).shape == (20,)


@pytest.mark.parametrize("entries", [3, 255, 256, 300])
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_large_constants_of_few_values_stay_indices(rng, entries, zeros):
    """Whatever the codebook's size: with zeros, they become one entry more."""
    count = 1 << 16
    codebook = rng.normal(size=entries).astype(np.float32)
    values = codebook[np.arange(count) % entries].reshape(256, 256)
    values[rng.random(values.shape) < zeros] = 0
    encoded = encode(Constant(values), FLOAT)
    assert encoded.codebook is not None and (encoded.positions is not None) == (zeros > 0 and entries > 3)
    decoded = decode(encoded, values.shape, FLOAT)
    if zeros == 0 or entries < 256:
        assert isinstance(decoded, IndexedConstant)
        assert decoded.indices.dtype == (np.uint8 if entries <= 256 else np.uint16)
    assert decoded.dense(FLOAT).tobytes() == values.tobytes()
    assert encode(decoded, FLOAT) == encoded
