"""Weights that are stored in fewer bits are expanded where they are packed, one panel at a time, never as a whole."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import runtime
import schema
from runtime.lowering.base import LoweringContext, PackedWeights, Values
from runtime.lowering.lane_factors import lane_order
from runtime.lowering.matmul_tiles import pack_tiles
from runtime.lowering.panels import pack_panels, pack_panels_of_quads
from runtime.lowering.products import OPERANDS, ConstantMatrix
from runtime.plan import Plan
from schema import Constant, Graph, Model, Node, Quantization, Tensor, evaluate
from schema.coding import constant as constant_coding
from schema.graph import IndexedConstant, StoredConstant
from schema.inference import Inference
from schema.ops import attributes as a
from tests.support.engine import graph_of

FLOAT = np.dtype(np.float32)
LAYERS = 4
CHANNELS = 128
WIDEST_PANEL = 32


@pytest.fixture
def file(rng) -> bytes:
    """Dense layers of 4-bit weights."""
    nodes, x = [], Tensor("x", FLOAT, (None, CHANNELS))
    last = x
    for i in range(LAYERS):
        integers = rng.integers(-7, 8, (CHANNELS, CHANNELS)).astype(np.int8)
        kernel = Tensor(
            "w", FLOAT, integers.shape, constant=Constant(integers, rng.random(CHANNELS).astype(np.float32), 0)
        )
        y = Tensor("y", FLOAT)
        nodes.append(Node("FULLY_CONNECTED", [last, kernel], [y], a.FullyConnectedAttributes(), f"dense{i}"))
        last = y
    return schema.write(Model([Graph(nodes, [x], ["x"], [last], ["y"])]))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16])
def test_nodes_that_share_weights_share_what_is_packed_of_them(dtype, rng):
    """Two convolutions of 4 channels, and one of two groups of them, with one kernel; depthwise ones with another."""
    integers = rng.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8)
    spread = rng.integers(-127, 128, (1, 3, 3, 8)).astype(np.int8)
    if dtype == FLOAT:
        kernel, depthwise = (Tensor.from_array("w", values.astype(FLOAT)) for values in (integers, spread))
    else:
        kernel, depthwise = (Tensor.from_array("w", values, Quantization(0.01)) for values in (integers, spread))
    quantization = None if dtype == FLOAT else Quantization(0.05)
    x, wide = (Tensor("x", dtype, (2, 6, 7, channels), quantization) for channels in (4, 8))
    made = [Tensor("y", dtype, None, quantization and Quantization(0.3)) for _ in range(5)]
    sources = [(x, kernel), (x, kernel), (wide, kernel), (wide, depthwise), (wide, depthwise)]
    nodes = [
        Node("CONV_2D" if weights is kernel else "DEPTHWISE_CONV_2D", [source, weights], [y], a.Conv2DAttributes())
        for (source, weights), y in zip(sources, made, strict=True)
    ]
    arrays = [(100 * rng.normal(size=t.shape)).astype(dtype) for t in (x, wide)]
    weights = PackedWeights(1 << 30)
    plan = Plan(graph_of(nodes, [x, wide], made), [t.shape for t in (x, wide)], weights, "TFLITE_DOUBLE", 1 << 30)
    packed = [key[1] for key in weights.arrays if key[1] in (kernel, depthwise) and key[2] != "sums"]
    assert [packed.count(tensor) for tensor in (kernel, depthwise)] == [2, 1]  # of one group and of two
    for found, expected in zip(plan.run(arrays, 1), evaluate.run(plan.graph, arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max() if dtype == FLOAT else 0)


@pytest.fixture
def expanded(monkeypatch):
    """How many dense arrays were made, how many lived at most at one time, and how many numbers the largest had."""
    alive, count = weakref.WeakSet(), {"made": 0, "most": 0, "largest": 0}
    dense = Constant.dense

    class Tracked(np.ndarray):
        pass

    def counted(self, dtype):
        array = dense(self, dtype).view(Tracked)
        gc.collect()
        alive.add(_Holder(array))
        count["made"] += 1
        count["largest"] = max(count["largest"], array.size)
        count["most"] = max(count["most"], len(alive))
        return array

    class _Holder:
        """Sets need hashes, which arrays have none of: this one lives as long as its array."""

        def __init__(self, array):
            array.holder = self

    monkeypatch.setattr(Constant, "dense", counted)
    return count


def test_one_panel_at_a_time(file, expanded, rng):
    model = runtime.load(file)
    x = rng.normal(size=(2, CHANNELS)).astype(np.float32)
    first = model(x)
    assert expanded["most"] == 1
    assert expanded["largest"] <= WIDEST_PANEL * CHANNELS < CHANNELS**2
    made = expanded["made"]
    both = model(np.concatenate([x, x]))
    assert expanded["made"] == made  # packed weights need no others
    np.testing.assert_array_equal(both, np.concatenate([first, first]))


def test_what_streams_decode_to_is_forgotten_once_it_is_packed(file, rng, monkeypatch):
    decoded = []
    decode = constant_coding.decode
    monkeypatch.setattr(constant_coding, "decode", lambda *a: decoded.append(1) or decode(*a))
    model = schema.read(file)
    constants = [node.inputs[1].constant for node in model.graphs[0].nodes]
    assert len(decoded) == LAYERS  # all are verified when the file is read
    assert {type(c) for c in constants} == {StoredConstant}
    arrays = [weakref.ref(c.values) for c in constants]
    before = [c.dense(FLOAT) for c in constants]
    engine = runtime.Model(model, 1)
    x = rng.normal(size=(2, CHANNELS)).astype(np.float32)
    first = engine(x)
    gc.collect()
    assert [array() for array in arrays] == [None] * LAYERS
    both = engine(np.concatenate([x, x]))
    assert len(decoded) == LAYERS  # they were packed from what was there
    np.testing.assert_array_equal(both, np.concatenate([first, first]))
    for constant, dense in zip(constants, before, strict=True):
        np.testing.assert_array_equal(constant.dense(FLOAT), dense)
    assert len(decoded) == 2 * LAYERS


def stored(kind: str, rng, shape: tuple[int, ...]) -> Constant:
    """float32 weights in one of the forms in which they may be stored."""
    if kind == "floats":
        return Constant(rng.normal(size=shape).astype(np.float32))
    scale = None if kind == "indices" else rng.random(shape[0]).astype(np.float32)
    if kind == "integers":
        return Constant(rng.integers(-7, 8, shape).astype(np.int8), scale)
    return IndexedConstant(rng.integers(0, 5, shape).astype(np.uint8), rng.normal(size=5).astype(np.float32), scale)


@pytest.mark.parametrize("kind", ["floats", "integers", "indices", "indices and scale"])
@pytest.mark.parametrize(("out", "groups"), [(1, 1), (33, 1), (64, 2), (70, 2)])
def test_panels_are_those_of_the_dense_weights(kind, out, groups, rng):
    """Groups, last panels, and depths with tails: element by element where the layout says that it is."""
    shape, width = (out, 3, 1, 5), 32
    constant = stored(kind, rng, shape)
    kernel = Tensor("w", FLOAT, shape, constant=constant)
    x, y = Tensor("x", FLOAT, (1, 9, 9, 5 * groups)), Tensor("y", FLOAT, (1, 7, 9, out))
    node = Node("CONV_2D", [x, kernel], [y], a.Conv2DAttributes())
    inputs = [t.type for t in node.inputs]
    known = Values(Inference(), node.inputs)
    context = LoweringContext(node, inputs, [y.type], known, "TFLITE_DOUBLE", PackedWeights(1 << 30))
    matrix = ConstantMatrix(context, OPERANDS["CONV_2D"])
    dense = constant.dense(FLOAT).reshape(out, 15)
    np.testing.assert_array_equal(matrix[1:out], dense[1:])

    packed = pack_panels(matrix, groups, width)
    assert packed.ctypes.data % 64 == 0
    channels = out // groups
    expected = np.zeros((groups, -(-channels // width), 15, width), np.float32)
    for channel in range(out):
        group, at = divmod(channel, channels)
        expected[group, at // width, :, at % width] = dense[channel]
    np.testing.assert_array_equal(packed, expected)


@pytest.mark.parametrize(("out", "groups"), [(1, 1), (33, 1), (70, 2)])
@pytest.mark.parametrize(("runs", "length"), [(1, 3), (1, 130), (3, 70)])
def test_int8_panels_are_those_of_the_dense_weights(out, groups, runs, length, rng):
    dense = rng.integers(-127, 128, (out, runs * length)).astype(np.int8)
    channels, width, order = out // groups, 32, lane_order(2)
    panels, quads = -(-channels // width), -(-runs * length // 4)
    steps, step_bytes = 3 * runs, 4 * -(-length // 12)
    by_quads = np.zeros((groups, panels, quads, width, 4), np.int8)
    by_tiles = np.zeros((groups, panels, steps, 2, step_bytes // 4, 16, 4), np.int8)
    for channel in range(out):
        group, at = divmod(channel, channels)
        place = int(np.flatnonzero(order == at % width)[0])
        for run in range(runs):
            for k in range(length):
                value, depth = dense[channel, run * length + k], run * length + k
                by_quads[group, at // width, depth // 4, place, depth % 4] = value
                step, byte = run * 3 + k // step_bytes, k % step_bytes
                by_tiles[group, at // width, step, place // 16, byte // 4, place % 16, byte % 4] = value
    np.testing.assert_array_equal(pack_panels_of_quads(dense, groups, width, order), by_quads)
    np.testing.assert_array_equal(pack_tiles(dense, groups, runs, steps, step_bytes), by_tiles)


def test_values_that_were_released_are_the_same_again(rng):
    tensor = Tensor("w", FLOAT, (3, 4), constant=Constant(np.arange(12, dtype=np.int8).reshape(3, 4), np.ones(3), 0))
    before = tensor.value
    assert tensor.value is before
    tensor.release()
    np.testing.assert_array_equal(tensor.value, before)
