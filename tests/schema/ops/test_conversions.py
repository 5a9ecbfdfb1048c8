"""CAST, QUANTIZE, DEQUANTIZE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import DTypeAttributes
from tests.support.drawing import dtypes, generators, numbers, quantizations, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOATS = "float32 float16 float64".split()
INTEGERS = "int8 uint8 int16 uint16 int32 uint32 int64".split()
AFFINE = "int8 uint8 int16".split()


@given(st.data())
def test_cast(data):
    source = data.draw(dtypes(*FLOATS, *INTEGERS, "bool"))
    target = data.draw(dtypes(*FLOATS, *INTEGERS, "bool"))
    x = numbers(data.draw(generators), source, data.draw(shapes(1, 3)))
    assert_parity("CAST", DTypeAttributes(target), [Operand(x)])


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_cast_of_floats_saturates(dtype):
    ends = [] if dtype == "bool" else [float(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
    around = [0.5, -0.5, 1.99, -1.99, -1, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.0, -0.0]
    x = np.array([e + d for e in ends for d in (-1.5, -0.5, 0, 0.5, 1.5)] + around, np.float32)
    assert_parity("CAST", DTypeAttributes(np.dtype(dtype)), [Operand(x)])


def test_cast_to_uint64_saturates():
    x = np.array([-1, 3.7, 2.0**63, 2.0**64, np.inf])
    (y,) = run_reference("CAST", DTypeAttributes(np.dtype(np.uint64)), [Operand(x)])
    np.testing.assert_array_equal(y, np.array([0, 3, 2**63, 2**64 - 1, 2**64 - 1], np.uint64))


def test_cast_refuses_other_dtypes():
    with pytest.raises(UnsupportedError):
        ops.get("CAST").check(DTypeAttributes(np.dtype(np.complex64)))
    with pytest.raises(UnsupportedError):
        ops.get("CAST").infer(DTypeAttributes(np.dtype(np.float32)), [TensorType((1,), np.complex64)], [None])


@given(st.data())
def test_quantize_of_floats(data):
    dtype, rng = data.draw(dtypes(*AFFINE)), data.draw(generators)
    q = data.draw(quantizations(dtype))
    # Within and beyond the range, with exact halves: where the rounding mode shows.
    steps = rng.integers(-2 * np.iinfo(dtype).max, 2 * np.iinfo(dtype).max, 40) / 2
    x = np.concatenate([steps * q.scale[0], numbers(rng, np.dtype(np.float32), (20,))]).astype(np.float32)
    assert_parity("QUANTIZE", DTypeAttributes(dtype), [Operand(x)], q)


@given(st.data())
def test_quantize_per_channel(data):
    rng, shape = data.draw(generators), (3, 4, 5)
    axis = data.draw(st.integers(0, 2))
    q = Quantization(10 ** rng.uniform(-3, 0, shape[axis]), 0, axis)
    x = numbers(rng, np.dtype(np.float32), shape)
    assert_parity("QUANTIZE", DTypeAttributes(np.dtype(np.int8)), [Operand(x)], q)


@given(st.data())
def test_requantize(data):
    source, target = data.draw(st.sampled_from([("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"),
                                                ("uint8", "int8"), ("int16", "int16"), ("int16", "int8"),
                                                ("int8", "int16"), ("int16", "int32"), ("int32", "int8"),
                                                ("int32", "int16")]))  # fmt: skip
    x = numbers(data.draw(generators), np.dtype(source), (64,))
    if source == "int32":
        x >>= 8
    q_in = data.draw(quantizations(np.dtype(source))) if source != "int32" else Quantization(0.013)
    factor = data.draw(st.floats(0.01, 30))
    zero = 0 if target in ("int16", "int32") else data.draw(quantizations(np.dtype(target))).zero_point[0]
    q_out = Quantization(q_in.scale[0] * np.float32(factor), zero)
    assert_parity("QUANTIZE", DTypeAttributes(np.dtype(target)), [Operand(x, q_in)], q_out)


@given(st.data())
def test_dequantize(data):
    dtype = data.draw(dtypes(*AFFINE))
    x = numbers(data.draw(generators), dtype, data.draw(shapes(1, 4)))
    assert_parity("DEQUANTIZE", None, [Operand(x, data.draw(quantizations(dtype)))], tolerance=0)


@given(st.data())
def test_dequantize_per_channel(data):
    rng, shape = data.draw(generators), (3, 4, 5)
    axis = data.draw(st.integers(0, 2))
    q = Quantization(10 ** rng.uniform(-3, 0, shape[axis]), 0, axis)
    assert_parity("DEQUANTIZE", None, [Operand(numbers(rng, np.dtype(np.int8), shape), q)], tolerance=0)


def test_dequantize_of_float16(rng):
    x = Operand(rng.normal(size=(3, 4)).astype(np.float16), constant=True)
    assert_parity("DEQUANTIZE", None, [x], tolerance=0)


def test_quantization_needs_a_scale_and_a_dtype_that_has_one():
    x = TensorType((1,), np.int8)
    with pytest.raises(ShapeError):
        ops.get("DEQUANTIZE").reference(None, [np.zeros(1, np.int8)], [x], [TensorType((1,), np.float32)])
    with pytest.raises(ShapeError):
        ops.get("QUANTIZE").reference(
            DTypeAttributes(x.dtype), [np.zeros(1, np.float32)], [TensorType((1,), np.float32)], [x]
        )
    with pytest.raises(UnsupportedError):
        ops.get("QUANTIZE").check(DTypeAttributes(np.dtype(np.float32)))
    with pytest.raises(UnsupportedError):
        ops.get("QUANTIZE").infer(DTypeAttributes(x.dtype), [TensorType((1,), bool)], [None])
    with pytest.raises(UnsupportedError):
        ops.get("DEQUANTIZE").infer(None, [TensorType((1,), np.float32)], [None])
