"""Weights that are stored in fewer bits are expanded to be packed, one layer at a time, and not kept expanded."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import runtime
import schema
from schema import Constant, Graph, Model, Node, Tensor
from schema.ops import attributes as a

FLOAT = np.dtype(np.float32)
LAYERS = 4


@pytest.fixture
def file(rng) -> bytes:
    """Dense layers of 4-bit weights."""
    nodes, x = [], Tensor("x", FLOAT, (None, 64))
    last = x
    for i in range(LAYERS):
        integers = rng.integers(-7, 8, (64, 64)).astype(np.int8)
        kernel = Tensor("w", FLOAT, (64, 64), constant=Constant(integers, rng.random(64).astype(np.float32), 0))
        y = Tensor("y", FLOAT)
        nodes.append(Node("FULLY_CONNECTED", [last, kernel], [y], a.FullyConnectedAttributes(), f"dense{i}"))
        last = y
    return schema.write(Model([Graph(nodes, [x], ["x"], [last], ["y"])]))


@pytest.fixture
def expanded(monkeypatch):
    """How many dense arrays were made, and how many lived at most at one time."""
    alive, count = weakref.WeakSet(), {"made": 0, "most": 0}
    dense = Constant.dense

    class Tracked(np.ndarray):
        pass

    def counted(self, dtype):
        array = dense(self, dtype).view(Tracked)
        gc.collect()
        alive.add(_Holder(array))
        count["made"] += 1
        count["most"] = max(count["most"], len(alive))
        return array

    class _Holder:
        """Sets need hashes, which arrays have none of: this one lives as long as its array."""

        def __init__(self, array):
            array.holder = self

    monkeypatch.setattr(Constant, "dense", counted)
    return count


def test_one_layer_at_a_time(file, expanded, rng):
    model = runtime.load(file)
    x = rng.normal(size=(2, 64)).astype(np.float32)
    first = model(x)
    assert expanded == {"made": LAYERS, "most": 1}
    both = model(np.concatenate([x, x]))
    assert expanded["made"] == LAYERS  # packed weights need no others
    np.testing.assert_array_equal(both, np.concatenate([first, first]))


def test_values_that_were_released_are_the_same_again(rng):
    tensor = Tensor("w", FLOAT, (3, 4), constant=Constant(np.arange(12, dtype=np.int8).reshape(3, 4), np.ones(3), 0))
    before = tensor.value
    assert tensor.value is before
    tensor.release()
    np.testing.assert_array_equal(tensor.value, before)
