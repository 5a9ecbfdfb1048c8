"""Shapes with unknown dimensions, and shape arithmetic."""

import numpy as np
import pytest

from schema import Graph, Node, Quantization, Tensor, inference
from schema.errors import ShapeError
from schema.ops import attributes as a


def constant(*values) -> Tensor:
    return Tensor.from_array("c", np.array(values, np.int32))


def scalar(value) -> Tensor:
    return Tensor.from_array("c", np.array(value, np.int32))


def keras_reshape(shape, target) -> tuple[Graph, Tensor]:
    """RESHAPE(x, PACK(SHAPE(x)[0], *target)): how Keras keeps the batch open."""
    x, dims, batch, packed, y = (
        Tensor("x", np.float32, shape),
        *(Tensor("t", np.int32) for _ in range(3)),
        Tensor("y", np.float32),
    )
    nodes = [
        Node("SHAPE", [x], [dims], a.DTypeAttributes(dtype=np.dtype(np.int32))),
        Node(
            "STRIDED_SLICE",
            [dims, constant(0), constant(1), constant(1)],
            [batch],
            a.StridedSliceAttributes(shrink_axis_mask=1),
        ),
        Node("PACK", [batch, *map(scalar, target)], [packed], a.AxisAttributes()),
        Node("RESHAPE", [x, packed], [y], None, "flatten"),
    ]
    return Graph(nodes, [x], ["x"], [y], ["y"]), packed


def test_unknown_batch_passes_through_shape_arithmetic():
    graph, packed = keras_reshape((None, 4, 3), (12,))
    result = inference.infer(graph)
    assert result.types[graph.outputs[0]].shape == (None, 12)
    value, known = result.partial[packed]
    assert (value.tolist(), known.tolist()) == ([0, 12], [False, True])


def test_concrete_shapes_fold_shape_arithmetic():
    graph, packed = keras_reshape((None, 4, 3), (12,))
    result = inference.infer(graph, [(5, 4, 3)])
    assert result.types[graph.outputs[0]].shape == (5, 12)
    assert result.values[packed].tolist() == [5, 12]


def test_the_rank_is_known_without_the_shape():
    x, rank, y = Tensor("x", np.float32, (None, 4)), Tensor("r", np.int32), Tensor("y", np.float32)
    nodes = [Node("RANK", [x], [rank]), Node("FILL", [rank, Tensor.from_array("v", np.float32(1))], [y])]
    assert inference.infer(Graph(nodes, [x], ["x"], [y], ["y"])).types[y].shape == (2,)


def test_an_empty_tensor_may_not_be_huge():
    x, y = Tensor("x", np.float32, (0, 1 << 30)), Tensor("y", np.float32)
    graph = Graph([Node("TILE", [x, constant(1, 1 << 30)], [y], None, "tile")], [x], ["x"], [y], ["y"])
    with pytest.raises(ShapeError, match="TILE 'tile'"):
        inference.infer(graph)


def test_annotate_sets_shapes():
    graph, _ = keras_reshape((None, 4, 3), (2, 6))
    inference.annotate(graph)
    assert graph.outputs[0].shape == (None, 2, 6)


def test_arithmetic_with_an_unknown_is_unknown():
    x, dims, doubled, y = (
        Tensor("x", np.float32, (None, 3)),
        Tensor("d", np.int32),
        Tensor("m", np.int32),
        Tensor("y", np.float32),
    )
    nodes = [
        Node("SHAPE", [x], [dims], a.DTypeAttributes(dtype=np.dtype(np.int32))),
        Node("MUL", [dims, constant(2, 2)], [doubled], a.ArithmeticAttributes()),
        Node("FILL", [doubled, Tensor.from_array("v", np.float32(1))], [y]),
    ]
    graph = Graph(nodes, [x], ["x"], [y], ["y"])
    assert inference.infer(graph).types[y].shape == (None, 6)
    assert inference.infer(graph, [(4, 3)]).types[y].shape == (8, 6)


def test_errors_name_the_node():
    graph, _ = keras_reshape((None, 4, 3), (12,))
    graph.nodes[-1].inputs[1] = constant(7, 5)
    with pytest.raises(ShapeError, match="RESHAPE 'flatten'"):
        inference.infer(graph, [(5, 4, 3)])


def test_a_wrong_declared_dtype_is_an_error():
    graph, _ = keras_reshape((None, 4, 3), (12,))
    graph.outputs[0].dtype = np.dtype(np.int32)
    with pytest.raises(ShapeError, match="declared int32, computed float32"):
        inference.infer(graph)


def test_sizes_beyond_reason_are_errors():
    x, y = Tensor("x", np.float32, (2,)), Tensor("y", np.float32)
    graph = Graph(
        [Node("FILL", [constant(2**30, 2**30), Tensor.from_array("v", np.float32(1))], [y])], [x], ["x"], [y], ["y"]
    )
    with pytest.raises(ShapeError, match="bytes"):
        inference.infer(graph)


def test_constants_of_int8_fold_with_the_scale_of_their_output():
    q = Quantization(0.5)
    x, y = (Tensor.from_array(name, np.array([4, 6], np.int8), q) for name in "xy")
    total = Tensor("total", np.int8, quantization=Quantization(1.0))
    graph = Graph([Node("ADD", [x, y], [total], a.ArithmeticAttributes())], outputs=[total], output_names=["total"])
    assert inference.infer(graph).values[total].tolist() == [4, 6]
