"""What a small file may ask for is bounded before anything is allocated, and the error names the layer."""

import numpy as np
import pytest

import runtime
import schema
from schema import Constant, Graph, InputError, MemoryLimitError, Model, Node, Tensor
from schema.ops import attributes as a
from tests.corpus.models import single, x

LIMIT = 1 << 20


def load(graph: Graph, memory_limit: int | None = LIMIT) -> runtime.Model:
    return runtime.load(schema.write(Model([graph])), threads=1, memory_limit=memory_limit)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("TILE", [x(2, 3), ints(2**10, 2**10)], None),
        ("PAD", [x(2, 3), ints(0, 2**20, 0, 0).reshape(2, 2)], None),
        ("BROADCAST_TO", [x(1, 3), ints(2**18, 3)], None),
        ("RESIZE_BILINEAR", [x(1, 2, 2, 3), ints(2**10, 2**10)], None),
        ("CONV_2D", [x(1, 2, 2, 1), np.ones((1, 1, 1, 1), np.float32)],
         a.Conv2DAttributes(padding="EXPLICIT", pads=(2**10, 0, 2**10, 0))),
    ],
)  # fmt: skip
def test_large_intermediates_are_refused(op, operands, attributes):
    graph = single(op, operands, attributes, name="the layer")
    model = load(graph)
    with pytest.raises(MemoryLimitError, match=f"{op} 'the layer'.*limit of {LIMIT}"):
        model(np.ones(graph.inputs[0].shape, np.float32))


def test_a_terabyte_is_refused_without_being_told():
    graph = single("TILE", [x(2, 3), ints(2**20, 2**15)])
    with pytest.raises(MemoryLimitError, match="TILE"):
        load(graph, None)(np.ones((2, 3), np.float32))


def test_sizes_that_depend_on_data_are_bounded():
    graph = single("TILE", [x(2, 3), x(2, dtype=np.int32)], name="late")
    model = load(graph)
    assert model(np.ones((2, 3), np.float32), ints(2, 2)).shape == (4, 6)
    with pytest.raises(MemoryLimitError, match="late"):
        model(np.ones((2, 3), np.float32), ints(2**10, 2**10))


def test_constants_that_share_bytes_count_each():
    """Two hundred layers with one stored kernel: less than 100 KB in the file, 13 MB when each is packed."""
    stored = Constant(np.zeros((128, 128), np.int8), np.ones(128, np.float32), 0)
    flow = [Tensor("x", np.float32, (1, 128)), *(Tensor("t", np.float32) for _ in range(200))]
    nodes = [
        Node("FULLY_CONNECTED", [flow[i], Tensor("w", np.float32, (128, 128), None, stored)], [flow[i + 1]],
             a.FullyConnectedAttributes(), f"dense{i}")
        for i in range(200)
    ]  # fmt: skip
    graph = Graph(nodes, flow[:1], ["x"], flow[-1:], ["y"])
    assert len(schema.write(Model([graph]))) < 100_000
    with pytest.raises(MemoryLimitError, match="constants"):
        load(graph)
    assert load(graph, 64 << 20)(np.ones((1, 128), np.float32)).shape == (1, 128)


def test_what_fits_runs():
    assert load(single("TILE", [x(2, 3), ints(2**7, 2**8)]))(np.ones((2, 3), np.float32)).shape == (256, 768)


def test_a_limit_is_a_number_of_bytes():
    with pytest.raises(InputError, match="memory_limit"):
        load(single("RELU", [x(2)]), 0)
