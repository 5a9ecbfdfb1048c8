"""Which runs of nodes get the help of other threads."""

import numpy as np
import pytest

import runtime
import schema
from runtime import sharing
from runtime.native.target import TIERS
from runtime.steps import NativeStep
from schema import Model, Node, Tensor
from schema.ops.attributes import Conv2DAttributes, Pool2DAttributes
from tests.support.engine import graph_of
from tests.support.operands import float_operands, int8_operands

LEAST = 40_000


@pytest.fixture(autouse=True)
def _shared(monkeypatch):
    monkeypatch.setattr(sharing, "LEAST", LEAST)


def is_alone(nodes, inputs, outputs, arrays):
    """Whether two threads leave the work to one of them."""
    model = runtime.load(schema.write(Model([graph_of(nodes, inputs, outputs)])), threads=2)
    (step,) = model.plan(arrays).steps
    assert isinstance(step, NativeStep)
    return step.plan.is_alone(2)


def convolution(rng, make, size, channels):
    x, input_, constants, y = make(rng, (1, size, size, channels), (channels, 1, 1, channels), channels, True)
    return [Node("CONV_2D", [input_, *constants], [y], Conv2DAttributes())], [input_], [y], [x]


@pytest.mark.parametrize("make", [float_operands, int8_operands])
def test_small_work_is_left_to_the_caller(make, rng):
    assert is_alone(*convolution(rng, make, 6, 16))
    assert not is_alone(*convolution(rng, make, 112, 64))


def test_many_small_nodes_are_much_work():
    x = y = Tensor("x", np.float32, (1, 16, 16, 8))
    nodes = []
    for i in range(64):
        y, before = Tensor("y", np.float32), y
        nodes.append(Node("MAX_POOL_2D", [before], [y], Pool2DAttributes(3, 3, 1, 1, "SAME")))
        array = np.zeros(x.shape, np.float32)
        assert is_alone(nodes, [x], [y], [array]) == (2 * 4 * 16 * 16 * 8 * (i + 1) / sharing.BYTES < LEAST)


def test_every_tier_has_rates():
    assert sharing.RATES.keys() == TIERS.keys()
