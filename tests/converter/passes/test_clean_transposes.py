import numpy as np
import pytest

from converter.passes import clean_transposes
from tests.converter.passes.building import Building, names, rewritten

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def transpose(b: Building, x, perm, layer="turn"):
    return b("TRANSPOSE", x, b.integers(*perm), layer=layer)


def repeated(graph):
    """The pass until it finds nothing, as the manager runs it."""
    lines = []
    while found := rewritten(graph, clean_transposes.run):
        lines += found
    return lines


def test_two_that_cancel():
    b = Building()
    graph = b.end(b("NEG", transpose(b, transpose(b, b.x(None, 3, 4, 5), TO_NCHW), TO_NHWC)))
    assert rewritten(graph, clean_transposes.run) == ["turn and turn: transposes cancel"]
    assert names(graph) == ["NEG"]


def test_two_that_do_not():
    b = Building()
    graph = b.end(transpose(b, transpose(b, b.x(None, 3, 4, 5), TO_NCHW), (0, 2, 1, 3)))
    assert rewritten(graph, clean_transposes.run) == ["turn and turn: transposes merged"]
    assert names(graph) == ["TRANSPOSE"]
    assert graph.nodes[0].inputs[1].value.tolist() == [0, 1, 3, 2]


BETWEEN = {
    "RELU": lambda b, x: b("RELU", x),
    "ADD a channel vector": lambda b, x: b("ADD", x, b.normal(5, 1, 1)),
    "constant first": lambda b, x: b("SUB", b.normal(5, 1, 1), x),
    "MUL a number": lambda b, x: b("MUL", x, b.constant(0.5)),
    "PRELU": lambda b, x: b("PRELU", x, b.normal(5, 3, 4)),
    "SOFTMAX": lambda b, x: b("SOFTMAX", x, axis=1),
    "PAD": lambda b, x: b("PAD", x, b.constant([[0, 0], [0, 0], [1, 2], [0, 3]], np.int32)),
    "MEAN, keep_dims": lambda b, x: b("MEAN", x, b.integers(1), keep_dims=True),
}


@pytest.mark.parametrize("case", BETWEEN)
def test_what_lies_between_two_that_cancel(case):
    b = Building()
    y = BETWEEN[case](b, transpose(b, b.x(None, 3, 4, 5), TO_NCHW))
    graph = b.end(b("NEG", transpose(b, y, TO_NHWC)))
    repeated(graph)
    assert "TRANSPOSE" not in names(graph)
    assert len(graph.nodes) == 2


def test_two_operands_turned_alike():
    b = Building()
    x, y = (transpose(b, b.x(None, 3, 4, 5), TO_NCHW) for _ in range(2))
    graph = b.end(b("NEG", transpose(b, b("MUL", x, y), TO_NHWC)))
    repeated(graph)
    assert names(graph) == ["MUL", "NEG"]


def test_a_concatenation():
    b = Building()
    parts = [transpose(b, b.x(None, 3, 4, n), TO_NCHW) for n in (2, 3)]
    graph = b.end(b("NEG", transpose(b, b("CONCATENATION", *parts, axis=1), TO_NHWC)))
    repeated(graph)
    assert names(graph) == ["CONCATENATION", "NEG"]


@pytest.mark.parametrize("axes", [(2, 3), (1,), (1, 2, 3), (3, 1)])
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("op", ["MEAN", "REDUCE_MAX"])
def test_a_reduction_takes_in_the_order(axes, keep_dims, op):
    b = Building()
    x = transpose(b, b.x(None, 3, 4, 5), TO_NCHW)
    graph = b.end(b(op, x, b.integers(*axes), keep_dims=keep_dims))
    assert len(rewritten(graph, clean_transposes.run)) == 1
    assert names(graph)[0] == op


def test_only_axes_of_1_are_moved():
    b = Building()
    graph = b.end(transpose(b, b.x(None, 1, 4, 1), (0, 3, 2, 1)), transpose(b, b.x(None, 1, 4), (0, 2, 1)))
    rewritten(graph, clean_transposes.run)
    assert names(graph) == ["RESHAPE", "RESHAPE"]


def test_near_misses():
    b = Building()
    x = b.x(None, 3, 4, 5)
    shared = transpose(b, x, TO_NCHW)
    graph = b.end(
        b("RELU", shared),
        shared,
        b("SOFTMAX", transpose(b, x, TO_NCHW)),  # nothing behind it to cancel with
        b("ADD", transpose(b, x, TO_NCHW), b.x(5, 3, 4)),
        b("ADD", transpose(b, x, TO_NCHW), b.normal(1, 1, 5, 3, 4)),  # gains an axis
        transpose(b, b.x(None, None, 1), (1, 0, 2)),
    )
    assert rewritten(graph, clean_transposes.run) == []


def test_an_output_keeps_its_tensor():
    b = Building()
    y = b("RELU", b.x(None, 3, 4))
    turned = transpose(b, transpose(b, y, (0, 2, 1)), (0, 2, 1))
    graph = b.end(turned)
    rewritten(graph, clean_transposes.run)
    assert names(graph) == ["RELU"]
    assert graph.outputs == [turned]
