"""Passes on graphs that are quantized already: what moves elements is cleaned up, integers come out the same."""

import numpy as np
import pytest

from converter.passes import manager
from schema import evaluate
from schema.graph import Tensor
from schema.inference import annotate
from schema.quantization import Quantization
from tests.converter.passes.building import Building, check_order, draw, names

INT8 = np.dtype(np.int8)
COARSE, FINE = Quantization(0.05, 3), Quantization(0.02, -7)


def quantized(b: Building, op, *inputs, by, **attributes) -> Tensor:
    y = b(op, *inputs, **attributes)
    y.quantization = by
    return y


def unchanged(graph):
    """The same bytes before and after all passes; what the explanation says."""
    annotate(graph)
    arrays = draw(graph, np.random.default_rng(5), 3)
    before = evaluate.run(graph, arrays)
    explanation = manager.optimize(graph)
    annotate(graph)
    check_order(graph)
    for actual, expected in zip(evaluate.run(graph, arrays), before, strict=True):
        assert np.array_equal(actual, expected)
    return explanation


def start(b: Building, *shape, by=COARSE):
    return quantized(b, "QUANTIZE", b.x(None, *shape), by=by, dtype=INT8)


def end(b: Building, x):
    return b("DEQUANTIZE", x)


@pytest.mark.parametrize("other", [COARSE, FINE])
def test_reshapes_around_integers(other):
    b = Building()
    y = quantized(b, "SQUEEZE", start(b, 1, 9, 4), by=COARSE, axes=(1,))
    y = quantized(b, "RELU", y, by=other)
    y = quantized(b, "EXPAND_DIMS", y, b.index(1), by=other)
    graph = b.end(end(b, y))
    unchanged(graph)
    assert names(graph) == ["QUANTIZE", "RELU", "DEQUANTIZE"]


def test_transposes_around_integers():
    b = Building()
    y = quantized(b, "TRANSPOSE", start(b, 5, 9, 4), b.integers(0, 3, 1, 2), by=COARSE)
    constant = Tensor.from_array("c", b.rng.integers(-100, 100, (4, 1, 1)).astype(np.int8), FINE)
    y = quantized(b, "ADD", y, constant, by=FINE)
    y = quantized(b, "TRANSPOSE", y, b.integers(0, 2, 3, 1), by=FINE)
    graph = b.end(end(b, y))
    unchanged(graph)
    assert names(graph) == ["QUANTIZE", "ADD", "DEQUANTIZE"]


def test_quantizing_moves_before_a_reshape():
    b = Building()
    x = b("SQUEEZE", b("RELU", b.x(None, 1, 9, 4)), axes=(1,))
    y = quantized(b, "QUANTIZE", x, by=COARSE, dtype=INT8)
    graph = b.end(b("TANH", b("EXPAND_DIMS", end(b, y), b.index(1))))
    unchanged(graph)
    assert names(graph) == ["RELU", "QUANTIZE", "DEQUANTIZE", "TANH"]


def test_integer_arithmetic_stays():
    b = Building()
    zero = Tensor.from_array("zero", np.full((4,), 3, np.int8), COARSE)
    y = quantized(b, "ADD", start(b, 4), zero, by=COARSE)
    y = quantized(b, "MUL", y, Tensor.from_array("one", np.ones(4, np.int8), Quantization(1.0, 0)), by=COARSE)
    y = quantized(b, "RELU", y, by=COARSE)
    y = quantized(b, "MINIMUM", y, Tensor.from_array("six", np.full((), 100, np.int8), COARSE), by=COARSE)
    graph = b.end(end(b, y))
    before = names(graph)
    unchanged(graph)
    assert names(graph) == before


def test_a_requantization_is_no_identity():
    b = Building()
    y = quantized(b, "QUANTIZE", start(b, 4), by=FINE, dtype=INT8)
    graph = b.end(end(b, y))
    unchanged(graph)
    assert names(graph) == ["QUANTIZE", "QUANTIZE", "DEQUANTIZE"]
