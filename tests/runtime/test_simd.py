"""Vector types and rules of requantization, against numpy and the schema."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import native_function
from schema import fixedpoint
from tests.support.probe_parameters import RULES, VECTORS


def call(name, block, tiles=1, **arrays):
    values = {k: v.ctypes.data if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
    params = block.pack(dict.fromkeys(block.slots, 0) | values)
    symbols = kernel_library().load(["tests.support.probe_vectors"])
    assert native_function(symbols[f"xnn_probe_{name}"])(params.ctypes.data, 0, tiles, 0) == 0


INT32 = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-300, 300), st.sampled_from([-(2**31), 2**31 - 1, 0]))


@given(a=st.lists(INT32, min_size=16, max_size=16), b=st.lists(INT32, min_size=16, max_size=16))
def test_integers(a, b):
    a, b = np.array(a, np.int32), np.array(b, np.int32)
    output = np.zeros((16, 16), np.int32)
    call("integers", VECTORS, a=a, b=b, output=output)
    shift = b & 31
    with np.errstate(over="ignore"):
        expected = [
            a + b,
            a - b,
            a * b,
            a & b,
            a | b,
            a ^ b,
            a << shift,
            a >> shift,
            np.minimum(a, b),
            np.maximum(a, b),
            a == b,
            a.astype(np.int8),
            ((a.astype(np.int64) * b) >> 31).astype(np.int32),
            np.full(16, a.sum(dtype=np.int32)),
            np.full(16, a.max()),
            np.full(16, b[3]),
        ]
    np.testing.assert_array_equal(output, np.array(expected, np.int32))


def test_floats(rng):
    a, b = (100 * rng.standard_normal((2, 16))).astype(np.float32)
    output = np.zeros((12, 16), np.float32)
    call("floats", VECTORS, a=a, b=b, output=output)
    expected = [
        a + b,
        a - b,
        a * b,
        a / b,
        a * b,
        np.maximum(a, b),
        np.minimum(a, b),
        np.trunc(a),
        a.astype(np.float64) * b,
        np.full(16, a.max()),
        a,
        np.full(16, a.sum(dtype=np.float64)),
    ]
    np.testing.assert_allclose(output, np.array(expected, np.float32), rtol=1e-6)


@pytest.mark.parametrize("count", range(17))
def test_partial_vectors(count, rng):
    a, b = rng.standard_normal(16).astype(np.float32), rng.integers(-128, 0, 16, dtype=np.int8)
    output = np.full(96, 77, np.int8)
    call("partial", VECTORS, a=a, b=b, count=count, output=output)
    np.testing.assert_array_equal(output[:64].view(np.float32)[:count], a[:count])
    assert (output[4 * count : 64] == 77).all()
    np.testing.assert_array_equal(output[64:80], np.where(np.arange(16) < count, b, 77))
    np.testing.assert_array_equal(output[80:], np.where(np.arange(16) < count, b, 0))


def test_tiles(rng):
    depth = 7
    a, b = rng.standard_normal((3, depth)).astype(np.float32), rng.standard_normal((depth, 32)).astype(np.float32)
    bias = rng.integers(-(2**31), 2**31 - 1, 16, dtype=np.int32)
    output = np.zeros(3 * 32 + 2 * 16, np.float32)
    call("tiles", VECTORS, a=a, b=b, c=bias, count=depth, output=output)
    np.testing.assert_allclose(output[:96].reshape(3, 32), a @ b, rtol=1e-5, atol=1e-5)
    unsigned = a.view(np.uint8).reshape(3, depth, 4)[:2].astype(np.int64)
    signed = b.view(np.int8).reshape(-1)[: depth * 64].reshape(depth, 16, 4).astype(np.int64)
    dots = bias + np.einsum("rkq,kcq->rc", unsigned, signed)
    np.testing.assert_array_equal(output[96:].view(np.int32).reshape(2, 16), dots.astype(np.int32))


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([2**31 - 1, 2**20, 300]),
    exponent=st.integers(-31, 8),
    zero=st.sampled_from([-128, 0, 127]),
)
def test_requantization_rules(seed, size, exponent, zero):
    rng = np.random.default_rng(seed)
    acc = rng.integers(-size - 1, size, 64, dtype=np.int64)
    acc[:4] = [0, -1, size, -size - 1]
    scales = rng.uniform(0.5, 1.0, 64) * 2.0**exponent
    scales[4:8] = 2.0**exponent / 2  # ties
    q31, shift = fixedpoint.quantize_multipliers(scales)
    low, high = -128 - zero, 127 - zero
    output = np.zeros((4, 4, 16), np.int32)
    call(
        "requantize",
        RULES,
        tiles=4,
        acc=acc.astype(np.int32),
        q31=q31,
        shift=shift,
        scale=scales.astype(np.float32),
        wide_acc=acc,
        wide_q31=q31.astype(np.int64),
        wide_shift=shift.astype(np.int64),
        wide_scale=scales,
        output=output,
        low=low,
        high=high,
    )
    scalar, double, even, exact = output.transpose(1, 0, 2).reshape(4, 64)
    expected = fixedpoint.multiply_by_quantized_multiplier(acc, q31, shift)
    np.testing.assert_array_equal(scalar, expected)
    np.testing.assert_array_equal(double, expected)
    np.testing.assert_array_equal(even, fixedpoint.requantize(acc, scales, 0, low, high, "FP32_ROUND_EVEN"))
    np.testing.assert_array_equal(exact, fixedpoint.requantize(acc, scales, 0, low, high, exact=True))
