import numpy as np
import pytest

from converter.passes import fold_shape_arithmetic
from tests.converter.passes.building import Building, names, rewritten

INT32 = np.dtype(np.int32)


def shape_of(b: Building, x):
    return b("SHAPE", x, dtype=INT32)


def test_flatten_with_an_unknown_batch():
    b = Building()
    x = b.x(None, 3, 4, 2)
    target = b("PACK", b.batch_of(x), b.index(24), axis=0)
    graph = b.end(b("RESHAPE", x, target, layer="flatten"))
    assert rewritten(graph, fold_shape_arithmetic.run) == ["flatten: shape is ?x24"]
    assert names(graph) == ["RESHAPE"]
    assert graph.nodes[0].inputs[1].value.tolist() == [-1, 24]


def test_flatten_spelled_with_minus_one():
    b = Building()
    x = b.x(None, 3, 4, 2)
    graph = b.end(b("RESHAPE", x, b("PACK", b.batch_of(x), b.index(-1), axis=0)))
    rewritten(graph, fold_shape_arithmetic.run)
    assert graph.nodes[0].inputs[1].value.tolist() == [-1, 24]


def test_tensordot_gathers_and_multiplies_sizes():
    b = Building()
    x = b.x(None, 5, 6)
    shape = shape_of(b, x)
    lead = b("GATHER", shape, b.integers(0, 1), axis=0)
    rows = b("REDUCE_PROD", lead, b.integers(0), keep_dims=False)
    flat = b("RESHAPE", x, b("PACK", rows, b.index(6), axis=0))
    y = b("FULLY_CONNECTED", flat, b.normal(4, 6))
    graph = b.end(b("RESHAPE", y, b("CONCATENATION", lead, b.integers(4), axis=0)))
    rewritten(graph, fold_shape_arithmetic.run)
    assert names(graph) == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE"]


def test_arithmetic_on_known_sizes_becomes_constant():
    b = Building()
    x = b.x(None, 6, 10, 2)
    sizes = b("STRIDED_SLICE", shape_of(b, x), b.integers(1), b.integers(3), b.integers(1))
    graph = b.end(b("RESIZE_BILINEAR", x, b("MUL", sizes, b.integers(2, 3))))
    rewritten(graph, fold_shape_arithmetic.run)
    assert names(graph) == ["RESIZE_BILINEAR"]
    assert graph.nodes[0].inputs[1].value.tolist() == [12, 30]


def test_two_unknown_sizes_stay_computed():
    b = Building()
    x = b.x(None, None, 6)
    shape = shape_of(b, x)
    lead = b("STRIDED_SLICE", shape, b.integers(0), b.integers(2), b.integers(1))
    graph = b.end(b("RESHAPE", x, b("CONCATENATION", lead, b.integers(2, 3), axis=0)))
    assert rewritten(graph, fold_shape_arithmetic.run) == []
    assert names(graph) == ["SHAPE", "STRIDED_SLICE", "CONCATENATION", "RESHAPE"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_batch_is_asked_of_the_models_input(padding):
    b = Building()
    x = b.x(None, 5, 5, 2)
    y = b("CONV_2D", x, b.normal(3, 3, 3, 2), padding=padding)
    z = b("RELU", y)
    size = 10 if padding == "SAME" else 6
    shape = b("PACK", b.batch_of(z), b.index(size), b.index(size), b.index(3), axis=0)
    kwargs = {"stride_h": 2, "stride_w": 2, "padding": "SAME"}
    graph = b.end(b("TRANSPOSE_CONV", shape, b.normal(3, 2, 2, 3), z, **kwargs))
    rewritten(graph, fold_shape_arithmetic.run)
    (shape_node,) = [node for node in graph.nodes if node.op == "SHAPE"]
    assert shape_node.inputs == graph.inputs


def test_what_is_computed_for_its_shape_alone_is_not():
    """A step of a masked recurrent layer."""
    b = Building()
    x = b.x(None, 6)
    zeros = b("FILL", b("PACK", b.batch_of(x), b.index(4), axis=0), b.normal())
    state = b("TANH", b("ADD", b("FULLY_CONNECTED", x, b.normal(4, 6)), b("FULLY_CONNECTED", zeros, b.normal(4, 4))))
    graph = b.end(b("FILL", shape_of(b, state), b.normal()))
    rewritten(graph, fold_shape_arithmetic.run)
    assert "TANH" not in names(graph)
    assert "FULLY_CONNECTED" not in names(graph)


def test_the_shape_of_what_is_computed_with_other_sizes_stays():
    b = Building()
    x = b.x(None, 6)
    zeros = b("FILL", b("PACK", b.batch_of(x), b.index(4), axis=0), b.normal())
    y = b("ADD", b("FULLY_CONNECTED", x, b.normal(1, 6)), b("FULLY_CONNECTED", zeros, b.normal(5, 4)))
    graph = b.end(b("FILL", shape_of(b, y), b.normal()))
    rewritten(graph, fold_shape_arithmetic.run)
    assert names(graph).count("FULLY_CONNECTED") == 2
