"""What a hostile file can say without being refused must neither crash nor take memory by its numbers alone."""

import contextlib
import tracemalloc

import numpy as np
import pytest

import schema
from schema import Graph, Model, Node, Quantization, ShapeError, Tensor, evaluate, fixedpoint, ops
from schema.ops.attributes import AlphaAttributes, Conv2DAttributes, Pool2DAttributes, SoftmaxAttributes
from tests.support import drawing_int8 as draws
from tests.support.litert import Operand
from tests.support.parity import run_reference

HUGE = 2**31 - 1
WINDOWS = [
    {"padding": "SAME", "dilation_h": HUGE, "dilation_w": HUGE},
    {"padding": "SAME", "dilation_h": 2**20},
    {"padding": "SAME", "stride_h": HUGE, "stride_w": HUGE},
    {"padding": "VALID", "stride_w": HUGE},
    {"padding": "EXPLICIT", "pads": (HUGE, 0, 0, HUGE), "stride_h": 2**30, "stride_w": 2**30},
]


def peak_of(function, *arguments) -> int:
    """Most bytes held at once."""
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("attributes", WINDOWS)
def test_windows_take_no_memory_by_their_numbers(attributes, rng):
    x, weights = rng.normal(size=(1, 4, 4, 2)).astype(np.float32), rng.normal(size=(3, 3, 3, 2)).astype(np.float32)
    inputs = [Operand(x), Operand(weights)]
    assert peak_of(run_reference, "CONV_2D", Conv2DAttributes(**attributes), inputs) < 1 << 20
    inputs = [Operand(x), Operand(rng.normal(size=(1, 3, 3, 2)).astype(np.float32))]
    assert peak_of(run_reference, "DEPTHWISE_CONV_2D", Conv2DAttributes(**attributes), inputs) < 1 << 20


@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pools_take_no_memory_by_their_numbers(op, rng):
    x = [Operand(rng.normal(size=(1, 4, 4, 2)).astype(np.float32))]
    same = Pool2DAttributes(HUGE, 2**30, 1, 1, "SAME")
    assert peak_of(run_reference, op, same, x) < 1 << 20
    explicit = Pool2DAttributes(HUGE, 1, 2**29, HUGE, "EXPLICIT", (HUGE - 1, 2**20, 0, 0))
    assert peak_of(run_reference, op, explicit, x) < 1 << 20


def test_transposed_windows_take_no_memory_by_their_numbers(rng):
    shape = Operand(np.array([1, 4, 4, 3], np.int32))
    weights, x = rng.normal(size=(3, 3, 3, 2)).astype(np.float32), rng.normal(size=(1, 1, 1, 2)).astype(np.float32)
    attributes = Conv2DAttributes(HUGE, HUGE, padding="SAME")
    assert peak_of(run_reference, "TRANSPOSE_CONV", attributes, [shape, Operand(weights), Operand(x)]) < 1 << 20


def test_a_dilation_past_the_input_leaves_the_middle_tap(rng):
    x, weights = rng.normal(size=(1, 4, 4, 2)).astype(np.float32), rng.normal(size=(3, 3, 3, 2)).astype(np.float32)
    far = run_reference("CONV_2D", Conv2DAttributes(1, 1, HUGE, HUGE, "SAME"), [Operand(x), Operand(weights)])[0]
    np.testing.assert_allclose(far, x @ weights[:, 1, 1].T, rtol=1e-5, atol=1e-6)


ONE_INPUT = [
    name
    for name in ops.NAMES
    if ops.get(name).inputs == (1, 1) and ops.get(name).Attributes is None and hasattr(ops.get(name), "tabulated")
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("op", [n for n in ONE_INPUT if n != "LOGICAL_NOT"] + ["ADD", "SUB", "MUL", "LESS", "PRELU"])
def test_scales_at_the_ends_of_float32(op):
    smallest, largest = float(np.finfo(np.float32).smallest_subnormal), float(np.finfo(np.float32).max)
    kind = ops.get(op)
    for given in (smallest, 1.0, largest):
        for output in (smallest, 1.0, largest):
            x = Operand(draws.EVERY_NUMBER, Quantization(given, 127))
            inputs = [x] * kind.inputs[0]
            with contextlib.suppress(ShapeError):  # a typed refusal is as good as a result
                run_reference(op, kind.Attributes and kind.Attributes(), inputs, [Quantization(output, -128)])


@pytest.mark.parametrize("rule", ["TFLITE_DOUBLE", "FP32_ROUND_EVEN"])
@pytest.mark.filterwarnings("error")
def test_linear_scales_at_the_ends_of_float32(rule, rng):
    smallest, largest = float(np.finfo(np.float32).smallest_subnormal), float(np.finfo(np.float32).max)
    x, weights = draws.int8(rng, 1, 3, 3, 2), draws.int8(rng, 3, 3, 3, 2)
    for given, output in ((smallest, largest), (largest, smallest), (largest, largest)):
        inputs = [Operand(x, Quantization(given, -128)), Operand(weights, Quantization(given))]
        with fixedpoint.requantization(rule):
            y = run_reference("CONV_2D", Conv2DAttributes(activation="RELU6"), inputs, [Quantization(output, 3)])[0]
        assert y.min() >= 3


@pytest.mark.parametrize("op", ["LEAKY_RELU", "ELU"])
def test_slopes_are_numbers(op):
    for alpha in (float("nan"), float("inf")):
        with pytest.raises(ShapeError, match="alpha"):
            ops.get(op).check(AlphaAttributes(alpha))


def test_scales_must_fit_the_weights(rng):
    x, weights = Operand(draws.int8(rng, 1, 3, 3, 2), Quantization(0.1)), draws.int8(rng, 3, 3, 3, 2)
    for quantization in (Quantization([0.1, 0.2]), Quantization([0.1, 0.2], axis=7), Quantization([1, 2, 3], axis=2)):
        with pytest.raises(ShapeError, match="axis"):
            run_reference("CONV_2D", Conv2DAttributes(), [x, Operand(weights, quantization)], [Quantization(1.0)])


WIDE = 2**14
ONE_TAP = np.ones((1, 1, 1, 1), np.float32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "shape"),
    [
        ("CONV_2D", [np.zeros((0, WIDE, WIDE, 1)), ONE_TAP], Conv2DAttributes(), (0, WIDE, WIDE, 1)),
        ("DEPTHWISE_CONV_2D", [np.zeros((0, WIDE, WIDE, 1)), ONE_TAP], Conv2DAttributes(), (0, WIDE, WIDE, 1)),
        ("CONV_2D", [ONE_TAP, np.zeros((0, 1, 1, 1))],
         Conv2DAttributes(padding="EXPLICIT", pads=(WIDE, 0, WIDE, 0)), (1, WIDE + 1, WIDE + 1, 0)),
        ("SOFTMAX", [np.zeros((WIDE, WIDE, 0))], SoftmaxAttributes(), (WIDE, WIDE, 0)),
        ("AVERAGE_POOL_2D", [np.zeros((0, WIDE, WIDE, 1))], Pool2DAttributes(), (0, WIDE, WIDE, 1)),
    ],
)  # fmt: skip
def test_nothing_takes_no_memory_by_its_other_dimensions(op, operands, attributes, shape):
    """Constants of no elements take no bytes of a file, and what is computed from them is computed when it is read."""
    x, y = Tensor("x", np.float32, (2,)), Tensor("y", np.float32)
    empty, constants = Tensor("empty", np.float32), [Tensor.from_array("c", a.astype(np.float32)) for a in operands]
    nodes = [Node(op, constants, [empty], attributes), Node("RELU", [x], [y])]
    data = schema.write(Model([Graph(nodes, [x], ["x"], [y, empty], ["y", "empty"])]))
    assert len(data) < 1000
    assert peak_of(schema.read, data) < 4 << 20  # modules that are imported now, among them
    results = []
    assert peak_of(lambda: results.extend(evaluate.run(schema.read(data).graph, [np.ones(2, np.float32)]))) < 1 << 20
    assert results[1].shape == shape
