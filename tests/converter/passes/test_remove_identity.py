import numpy as np
import pytest

from converter.passes import remove_identity
from tests.converter.passes.building import Building, names, rewritten

FLOAT32 = np.dtype(np.float32)


def everything(b: Building, x):
    return b("STRIDED_SLICE", x, b.integers(0, 0), b.integers(0, 4), b.integers(1, 1), begin_mask=3, end_mask=1)


IDENTITIES = {
    "RESHAPE": lambda b, x: b("RESHAPE", x, b.integers(-1, 4)),
    "TRANSPOSE": lambda b, x: b("TRANSPOSE", x, b.integers(0, 1)),
    "PAD": lambda b, x: b("PAD", x, b.constant(np.zeros((2, 2)), np.int32)),
    "CAST": lambda b, x: b("CAST", x, dtype=FLOAT32),
    "MUL": lambda b, x: b("MUL", x, b.constant(np.ones(4))),
    "MUL, constant first": lambda b, x: b("MUL", b.constant(1.0), x),
    "DIV": lambda b, x: b("DIV", x, b.constant(1.0)),
    "ADD": lambda b, x: b("ADD", x, b.constant(np.zeros(4))),
    "SUB": lambda b, x: b("SUB", x, b.constant(0.0)),
    "POW": lambda b, x: b("POW", x, b.constant(1.0)),
    "CONCATENATION": lambda b, x: b("CONCATENATION", x, axis=1),
    "SLICE": lambda b, x: b("SLICE", x, b.integers(0, 0), b.integers(-1, 4)),
    "STRIDED_SLICE": everything,
    "TILE": lambda b, x: b("TILE", x, b.integers(1, 1)),
    "SPLIT": lambda b, x: b("SPLIT", b.index(1), x, num=1),
}

NEAR_MISSES = {
    "RESHAPE": lambda b, x: b("RESHAPE", x, b.integers(-1, 2)),
    "TRANSPOSE": lambda b, x: b("TRANSPOSE", x, b.integers(1, 0)),
    "PAD": lambda b, x: b("PAD", x, b.constant([[0, 0], [0, 1]], np.int32)),
    "CAST": lambda b, x: b("CAST", x, dtype=np.dtype(np.int32)),
    "MUL": lambda b, x: b("MUL", x, b.constant([1, 1, 1, 1.001])),
    "MUL that adds an axis": lambda b, x: b("MUL", x, b.constant([[[1.0]]])),
    "SUB from 0": lambda b, x: b("SUB", b.constant(0.0), x),
    "DIV of 1": lambda b, x: b("DIV", b.constant(1.0), x),
    "ADD that broadcasts": lambda b, x: b("ADD", b("SLICE", x, b.integers(0, 0), b.integers(1, 4)), b.normal(3, 1)),
    "ADD with an activation": lambda b, x: b("ADD", x, b.constant(0.0), activation="RELU"),
    "backwards": lambda b, x: b(
        "STRIDED_SLICE", x, b.integers(0, 3), b.integers(0, -5), b.integers(1, -1), begin_mask=1, end_mask=1
    ),
}


@pytest.mark.parametrize("case", IDENTITIES)
def test_removed(case):
    b = Building()
    x = b.x(None, 4)
    graph = b.end(b("RELU", IDENTITIES[case](b, b("NEG", x))))
    before = len(graph.nodes)
    assert len(rewritten(graph, remove_identity.run)) == 1
    assert len(graph.nodes) == before - 1


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_stays(case):
    b = Building()
    graph = b.end(NEAR_MISSES[case](b, b("NEG", b.x(None, 4))))
    assert rewritten(graph, remove_identity.run) == []


def test_unknown_sizes_that_are_equal():
    b = Building()
    x = b.x(None, None, 4)
    y = b("RELU", x)
    graph = b.end(b("NEG", b("RESHAPE", y, b("SHAPE", x, dtype=np.dtype(np.int32)))))
    rewritten(graph, remove_identity.run)
    assert names(graph) == ["RELU", "NEG"]


def test_unknown_sizes_that_may_differ():
    b = Building()
    x, y = b.x(None, 4), b.x(None, 4)
    graph = b.end(b("BROADCAST_TO", b("NEG", x), b("SHAPE", y, dtype=np.dtype(np.int32))))
    assert rewritten(graph, remove_identity.run) == []


def test_an_output_keeps_its_tensor_and_an_input_never_becomes_an_output():
    b = Building()
    x = b.x(None, 4)
    y = b("MUL", b("RELU", x), b.constant(1.0))
    z = b("MUL", x, b.constant(1.0))
    graph = b.end(y, z)
    rewritten(graph, remove_identity.run)
    assert names(graph) == ["RELU", "MUL"]
    assert graph.outputs == [y, z]


def test_two_outputs_stay_two_tensors():
    b = Building()
    y = b("RELU", b.x(None, 4))
    graph = b.end(y, b("ADD", y, b.constant(0.0)))
    rewritten(graph, remove_identity.run)
    assert len(set(graph.outputs)) == 2


def test_integers_keep_their_arithmetic():
    b = Building()
    x = b.x(None, 4, dtype=np.int32)
    graph = b.end(b("NEG", b("ADD", x, b.integers(0))))
    assert rewritten(graph, remove_identity.run) == []
