"""IF and WHILE of drawn sizes, dtypes and arithmetic, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support import drawing_int8
from tests.support.drawing import generators, shapes
from tests.support.tflite_files import FileBuilder

DTYPES = ("float32", "int32", "int8")
ARITHMETIC = ("ADD", "SUB", "MUL")


class Arithmetic:
    """A dtype with one quantization, the shape and the constants that subgraphs work on."""

    def __init__(self, draw, dtype: str):
        self.rng, self.dtype = draw(generators), np.dtype(dtype)
        self.shape = draw(shapes(1, 3, high=5))
        int8 = self.dtype == np.int8
        self.quantization = Quantization(draw(drawing_int8.scales(1e-3, 1e-1)), draw(drawing_int8.zero_points))
        self.quantization = self.quantization if int8 else None

    def tensor(self, b: FileBuilder, name: str | None = None) -> int:
        return b.tensor(self.dtype, self.shape, None, self.quantization, name=name)

    def numbers(self) -> np.ndarray:
        if self.dtype.kind == "f":
            return self.rng.normal(size=self.shape).astype(np.float32)
        return self.rng.integers(-100, 100, self.shape).astype(self.dtype)

    def compute(self, b: FileBuilder, op: str, x: int) -> int:
        """x op a constant."""
        y = self.tensor(b)
        b.operator(op, [x, b.constant(self.numbers(), self.dtype, self.quantization)], [y], table(op.capitalize()))
        return y


def table(kind: str, **fields: int):
    options = getattr(tfl, f"{kind}OptionsT")()
    for name, value in fields.items():
        setattr(options, name, value)
    return options


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_if(dtype, data):
    a, b = Arithmetic(data.draw, dtype), FileBuilder()
    condition, x, y = b.tensor(np.bool_, ()), a.tensor(b), a.tensor(b, "choice")
    b.operator("IF", [condition, x], [y], table("If", thenSubgraphIndex=1, elseSubgraphIndex=2))
    b.ends([condition, x], [y])
    for _ in range(2):
        inner = b.subgraph()
        given_ = a.tensor(inner)
        inner.ends([given_], [a.compute(inner, data.draw(st.sampled_from(ARITHMETIC)), given_)])
    assert_same(b.pack(), [np.array(data.draw(st.booleans())), a.numbers()])


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_while(dtype, data):
    """x changes until a counter reaches its limit."""
    a, b = Arithmetic(data.draw, dtype), FileBuilder()
    x, count, limit = a.tensor(b), b.tensor(np.int32, ()), b.tensor(np.int32, ())
    results = [a.tensor(b, "loop"), b.tensor(np.int32, ()), b.tensor(np.int32, ())]
    b.operator("WHILE", [x, count, limit], results, table("While", condSubgraphIndex=1, bodySubgraphIndex=2))
    b.ends([x, count, limit], results[:2])
    condition, body = b.subgraph(), b.subgraph()
    inputs = [a.tensor(condition), *(condition.tensor(np.int32, ()) for _ in range(2))]
    goes_on = condition.tensor(np.bool_, ())
    condition.operator("LESS", inputs[1:], [goes_on])
    condition.ends(inputs, [goes_on])
    inputs = [a.tensor(body), *(body.tensor(np.int32, ()) for _ in range(2))]
    following = body.tensor(np.int32, ())
    step = body.constant(data.draw(st.integers(1, 3)), np.int32)
    body.operator("ADD", [inputs[1], step], [following], tfl.AddOptionsT())
    y = a.compute(body, data.draw(st.sampled_from(ARITHMETIC)), inputs[0])
    body.ends(inputs, [y, following, inputs[2]])
    arrays = [a.numbers(), *(np.array(data.draw(st.integers(0, 6)), np.int32) for _ in range(2))]
    assert_same(b.pack(), arrays, tolerance=1e-5)
