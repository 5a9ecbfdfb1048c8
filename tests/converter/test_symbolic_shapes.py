import numpy as np
import pytest

from converter.sizes import Size, values
from converter.symbolic_shapes import SymbolicShapes
from schema import evaluate
from schema.inference import annotate
from tests.converter.passes.building import Building, draw

INT32 = np.dtype(np.int32)


def analyse(b: Building, *outputs):
    graph = b.end(*outputs)
    annotate(graph)
    return SymbolicShapes(graph)


def test_inputs_have_sizes_of_their_own():
    b = Building()
    x, y = b.x(None, 4, None), b.x(None, 4, None)
    shapes = analyse(b, b("NEG", x), b("NEG", y))
    assert values(shapes.dims(x)) == [None, 4, None]
    assert len({*shapes.dims(x), *shapes.dims(y)}) == 5
    assert not shapes.same(x, y)


LAYERS = {
    "RELU": lambda b, x: b("RELU", x),
    "ADD": lambda b, x: b("ADD", x, b("MEAN", x, b.integers(1, 2), keep_dims=True)),
    "CONV_2D SAME": lambda b, x: b("CONV_2D", x, b.normal(3, 3, 3, 3), padding="SAME"),
    "CONV_2D padded": lambda b, x: b(
        "CONV_2D", b("PAD", x, b.constant([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32)), b.normal(3, 3, 3, 3)
    ),
    "CONV_2D EXPLICIT": lambda b, x: b("CONV_2D", x, b.normal(3, 3, 5, 3), padding="EXPLICIT", pads=(1, 1, 2, 2)),
    "MAX_POOL_2D": lambda b, x: b("MAX_POOL_2D", x, filter_h=3, filter_w=2, padding="SAME"),
    "EXPAND_DIMS, SQUEEZE": lambda b, x: b("SQUEEZE", b("EXPAND_DIMS", x, b.index(-1)), axes=(4,)),
    "TRANSPOSE twice": lambda b, x: b("TRANSPOSE", b("TRANSPOSE", x, b.integers(0, 2, 3, 1)), b.integers(0, 3, 1, 2)),
    "RESHAPE to its shape": lambda b, x: b("RESHAPE", x, b("SHAPE", x, dtype=INT32)),
    "RESHAPE there and back": lambda b, x: b("RESHAPE", b("RESHAPE", x, b.integers(-1, 3)), b("SHAPE", x, dtype=INT32)),
    "CONCATENATION, SPLIT": lambda b, x: b(
        "NEG", b.nodes("SPLIT", b.index(1), b("CONCATENATION", x, x, axis=1), attributes=b.kind("SPLIT", num=2))[0]
    ),
    "SPACE_TO_BATCH_ND": lambda b, x: b(
        "BATCH_TO_SPACE_ND",
        b(
            "SPACE_TO_BATCH_ND",
            b("RESIZE_BILINEAR", x, doubled(b, x)),
            b.integers(2, 2),
            b.constant(np.zeros((2, 2)), np.int32),
        ),
        b.integers(2, 2),
        b.constant(np.zeros((2, 2)), np.int32),
    ),
    "FULLY_CONNECTED": lambda b, x: b("FULLY_CONNECTED", x, b.normal(3, 3)),
    "BATCH_MATMUL": lambda b, x: b("BATCH_MATMUL", b("BATCH_MATMUL", x, x, adj_y=True), x),
    "TILE once": lambda b, x: b("TILE", x, b.integers(1, 1, 1, 1)),
    "STRIDED_SLICE": lambda b, x: b(
        "STRIDED_SLICE", x, b.integers(0, 0), b.integers(0, 0), b.integers(1, 1), begin_mask=3, end_mask=3
    ),
    "SLICE": lambda b, x: b("SLICE", x, b.integers(0, 0, 0, 0), b.integers(-1, -1, -1, 3)),
}


def doubled(b: Building, x):
    sizes = b("STRIDED_SLICE", b("SHAPE", x, dtype=INT32), b.integers(1), b.integers(3), b.integers(1))
    return b("MUL", sizes, b.integers(2, 2))


@pytest.mark.parametrize("case", LAYERS)
def test_what_keeps_unknown_sizes(case):
    b = Building()
    x = b.x(None, None, None, 3)
    y = LAYERS[case](b, x)
    shapes = analyse(b, y)
    if case == "SPACE_TO_BATCH_ND":
        resized = next(node.outputs[0] for node in b.graph.nodes if node.op == "RESIZE_BILINEAR")
        assert shapes.same(y, resized)
        assert not shapes.same(y, x)
    else:
        assert shapes.same(y, x)


CHANGES = {
    "CONV_2D VALID": lambda b, x: b("CONV_2D", x, b.normal(3, 3, 3, 3)),
    "CONV_2D, stride": lambda b, x: b("CONV_2D", x, b.normal(3, 3, 3, 3), padding="SAME", stride_h=2),
    "TRANSPOSE": lambda b, x: b("TRANSPOSE", x, b.integers(0, 2, 1, 3)),
    "PAD": lambda b, x: b("PAD", x, b.constant([[0, 0], [1, 0], [0, 0], [0, 0]], np.int32)),
    "TILE": lambda b, x: b("TILE", x, b.integers(1, 2, 1, 1)),
    "ADD of another": lambda b, x: b("ADD", x, b.x(None, None, None, 3)),
    "CONCATENATION": lambda b, x: b("CONCATENATION", x, x, axis=1),
    "STRIDED_SLICE": lambda b, x: b(
        "STRIDED_SLICE", x, b.integers(0, 1), b.integers(0, 0), b.integers(1, 1), begin_mask=1, end_mask=3
    ),
    "SLICE": lambda b, x: b("SLICE", x, b.integers(0, 1, 0, 0), b.integers(-1, -1, -1, 3)),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_changes_them(case):
    b = Building()
    x = b.x(None, None, None, 3)
    y = CHANGES[case](b, x)
    assert not analyse(b, y).same(y, x)


def test_equal_strides_give_equal_sizes():
    b = Building()
    x = b.x(None, None, None, 3)
    a = b("CONV_2D", x, b.normal(4, 3, 3, 3), padding="SAME", stride_h=2, stride_w=2)
    p = b("AVERAGE_POOL_2D", b("RELU", x), filter_h=2, stride_h=2, stride_w=2, padding="SAME")
    shapes = analyse(b, a, p)
    assert shapes.dims(a)[:3] == shapes.dims(p)[:3]


def test_elements_of_shape_arithmetic():
    b = Building()
    x = b.x(None, None, 4)
    shape = b("SHAPE", x, dtype=INT32)
    rows = b("REDUCE_PROD", b("GATHER", shape, b.integers(0, 1), axis=0), b.integers(0), keep_dims=False)
    packed = b("PACK", rows, b.index(4), axis=0)
    shapes = analyse(b, packed)
    batch, steps, _ = shapes.dims(x)
    assert list(shapes.elements(packed)) == [batch * steps, Size.number(4)]
    assert shapes.elements(x) is None


def test_sizes_are_what_running_gives():
    b = Building()
    x = b.x(None, 9, None, 3)
    y = b("CONV_2D", x, b.normal(4, 3, 3, 3), stride_h=2, stride_w=2)
    y = b("CONCATENATION", y, b("PAD", y, b.constant([[0, 0], [0, 0], [0, 1], [0, 0]], np.int32)), axis=2)
    graph = b.end(y)
    annotate(graph)
    dims = SymbolicShapes(graph).dims(y)
    arrays = draw(graph, np.random.default_rng(0), 2)
    assert evaluate.run(graph, arrays)[0].shape == (2, 4, 9, 4)
    assert values(dims) == [None, 4, None, 4]
