"""What op tests draw with hypothesis: shapes, numbers of any dtype, quantization parameters."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from schema import Quantization
from tests.support.litert import Operand

generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
"""Random generators: hypothesis shrinks the seed, numpy draws the numbers."""


def shapes(low_rank: int, high_rank: int, low: int = 1, high: int = 6) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(low, high), min_size=low_rank, max_size=high_rank).map(tuple)


def dtypes(*names: str) -> st.SearchStrategy[np.dtype]:
    return st.sampled_from([np.dtype(name) for name in names])


def every(*names: str) -> list[np.dtype]:
    """For tests of ops that move numbers: each case in all dtypes."""
    return [np.dtype(name) for name in names]


def numbers(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers from all of an integer dtype's range; floats around 0, negative zeros among them."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    drawn = np.asarray(rng.normal(0, 10, shape).astype(dtype))
    return np.where(rng.random(shape) < 0.1, dtype.type(-0.0), drawn)


def quantizations(dtype: np.dtype) -> st.SearchStrategy[Quantization]:
    """Scales from 1e-6 to 1e2, zero points at both ends and in the middle (int16: always 0)."""
    info = np.iinfo(dtype)
    zero_points = [0] if dtype == np.int16 else [info.min, info.max, (info.min + info.max + 1) // 2, info.min + 37]
    exponents = st.floats(-6, 2, allow_nan=False)
    return st.builds(lambda e, z: Quantization(np.float32(10**e), z), exponents, st.sampled_from(zero_points))


def quantized(dtype: np.dtype) -> bool:
    """Whether tensors of that dtype bear scales in these tests."""
    return dtype in (np.int8, np.uint8, np.int16)


def moved(draw, dtype: np.dtype) -> Quantization | None:
    """The one quantization of the input and the output of an op that only moves numbers."""
    return draw(quantizations(dtype)) if quantized(dtype) else None


def index_operand(draw, values, *, constant: bool | None = None) -> Operand:
    """An int32 operand such as a shape, stored in the file or fed (None: drawn)."""
    stored = draw(st.booleans()) if constant is None else constant
    return Operand(np.array(values, np.int32), None, stored)


@st.composite
def symbol_arrays(draw, most: int = 20_000) -> np.ndarray:
    """Few or many symbols, common or rare, anywhere in 0 to 255, with gaps between them."""
    rng = draw(generators)
    count = draw(st.one_of(st.integers(1, 40), st.sampled_from([1000, min(5000, most), most])))
    low = draw(st.integers(0, 255))
    alphabet = np.unique(rng.integers(low, 256, draw(st.sampled_from([1, 2, 3, 16, 300]))))
    weights = rng.random(len(alphabet)) ** draw(st.sampled_from([0, 1, 20]))
    return rng.choice(alphabet, count, p=weights / weights.sum()).astype(np.uint8)
