"""What the ledger says of a file is what the file spends."""

from __future__ import annotations

import numpy as np
import pytest

import schema
from schema import Constant, Graph, Model, Node, Tensor, container
from schema.coding.constant import encode
from schema.ledger import by_layer, by_node, ledger
from tests.support.folded import CHANNELS, dense_model, folded_layer


@pytest.fixture
def model(rng):
    """Two layers: `first` with biases as folded BatchNorm makes them, `second` with the same kernel and others."""
    kernel, likely = folded_layer(rng)
    return dense_model(kernel, [likely, Constant(rng.normal(size=CHANNELS).astype(np.float32))], ["first", "second"])


def test_biases_that_kernels_let_expect_count_as_they_are_stored(model):
    data = schema.write(model)
    (nodes,) = by_node(data)
    kernel, bias = (t.constant for t in model.graph.nodes[0].inputs[1:])
    alone = [sum(len(s.data) for _, s in encode(c, np.dtype(np.float32)).streams()) for c in (kernel, bias)]
    assert sum(nodes[0].values()) < sum(alone)
    assert sum(nodes[1].values()) == 4 * CHANNELS  # the kernel is the first one's, the biases are any floats
    padding = container.sizes(data)["weights"] - sum(sum(sizes.values()) for sizes in nodes)
    assert 0 <= padding < 8 * 5  # streams begin at multiples of their items' size


def test_layers_and_header_are_the_whole_file(model):
    data = schema.write(model)
    book = ledger(data)
    assert [layer.layer for layer in book.layers] == ["first", "second"]
    assert {layer.layer: layer.total for layer in book.layers} == by_layer(schema.read(data), data)
    sections = container.sizes(data)
    assert book.header + sum(layer.total for layer in book.layers) == book.total == len(data)
    assert 0 <= book.header - (len(data) - sections["weights"]) < 8 * 5


def test_a_file_without_weights():
    x, y = Tensor("x", np.float32, (None, 4)), Tensor("y", np.float32)
    data = schema.write(Model([Graph([Node("FLOOR", [x], [y], None, "floor")], [x], ["x"], [y], ["y"])]))
    assert ledger(data).layers == () and ledger(data).header == len(data)
    assert [sum(sizes.values()) for (sizes,) in by_node(data)] == [0]
