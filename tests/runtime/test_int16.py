"""int16 activations with int8 weights: kernels give the references' bits; the rest runs by the references."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.steps import HostStep
from schema import Node, Quantization, Tensor, evaluate
from schema.ops import attributes as a
from tests.support import drawing_int16
from tests.support.engine import compare, graph_of, run
from tests.support.guarded import run_guarded

INT16 = np.dtype(np.int16)
UNIT = Quantization(1 / 32768)


def flow(name: str, scale: float | Quantization) -> Tensor:
    return Tensor(name, INT16, None, scale if isinstance(scale, Quantization) else Quantization(scale))


@pytest.mark.parametrize("requantization", ["TFLITE_DOUBLE", "FP32_ROUND_EVEN"])
def test_a_network_from_floats_to_floats(rng, requantization):
    x, probabilities = Tensor("x", np.float32, (None, 6, 6, 3)), Tensor("y", np.float32)
    image, conv, relu, pooled, flat, dense, soft = (
        flow(n, s) for n, s in zip("abcdefg", (1e-4, 3e-4, 3e-4, 3e-4, 3e-4, 1e-3, UNIT), strict=True)
    )
    scales = rng.uniform(0.002, 0.02, 4)
    kernel = Tensor.from_array("w", rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), Quantization(scales))
    bias = Tensor.from_array("b", rng.integers(-(2**20), 2**20, 4, np.int64), Quantization(scales * 1e-4))
    weights = Tensor.from_array("v", rng.integers(-127, 128, (5, 36)).astype(np.int8), Quantization(0.01))
    nodes = [
        Node("QUANTIZE", [x], [image], a.DTypeAttributes(INT16), "quantize"),
        Node("CONV_2D", [image, kernel, bias], [conv], a.Conv2DAttributes(padding="SAME"), "conv"),
        Node("RELU", [conv], [relu], None, "relu"),
        Node("MAX_POOL_2D", [relu], [pooled], a.Pool2DAttributes(2, 2, 2, 2), "pool"),
        Node("RESHAPE", [pooled, Tensor.from_array("s", np.array([-1, 36], np.int32))], [flat], None, "flatten"),
        Node("FULLY_CONNECTED", [flat, weights, None], [dense], a.FullyConnectedAttributes(), "dense"),
        Node("SOFTMAX", [dense], [soft], a.SoftmaxAttributes(), "softmax"),
        Node("DEQUANTIZE", [soft], [probabilities], None, "dequantize"),
    ]
    arrays = [rng.standard_normal((2, 6, 6, 3)).astype(np.float32)]
    (result,) = compare(nodes, [x], [probabilities], arrays, native=False, requantization=requantization)
    np.testing.assert_allclose(result.sum(axis=1), 1, atol=1e-3)
    assert np.abs(result[0] - result[1]).max() > 0.01


NATIVE = [
    ("ADD", a.ArithmeticAttributes(), 2), ("SUB", a.ArithmeticAttributes("RELU"), 2),
    ("MUL", a.ArithmeticAttributes("RELU6"), 2), ("LEAKY_RELU", a.AlphaAttributes(0.1), 1), ("ABS", None, 1),
    ("TANH", None, 1), ("LOGISTIC", None, 1), ("EXP", None, 1), ("QUANTIZE", a.DTypeAttributes(INT16), 1),
    ("AVERAGE_POOL_2D", a.Pool2DAttributes(2, 2), 1), ("MAX_POOL_2D", a.Pool2DAttributes(3, 2, 2, 1, "SAME"), 1),
    ("MAXIMUM", None, 2), ("MINIMUM", None, 2), ("MEAN", a.ReduceAttributes(), 1),
    ("REDUCE_MAX", a.ReduceAttributes(), 1), ("REDUCE_MIN", a.ReduceAttributes(), 1),
    ("SOFTMAX", a.SoftmaxAttributes(), 1), ("SOFTMAX", a.SoftmaxAttributes(0.3), 1),
]  # fmt: skip
BY_REFERENCE = [
    ("SOFTMAX", a.SoftmaxAttributes(axis=1), 1),
    ("BATCH_MATMUL", a.BatchMatMulAttributes(False, True), 2), ("RESIZE_BILINEAR", a.ResizeAttributes(), 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attributes", "count"), [*NATIVE, *BY_REFERENCE])
def test_arithmetic_is_the_reference(op, attributes, count, rng):
    shape, scale = (1, 4, 4, 3), Quantization(2e-4)
    inputs = [Tensor(f"x{i}", INT16, shape, scale) for i in range(count)]
    operands = {"MEAN": [1, 2], "REDUCE_MAX": [1], "REDUCE_MIN": [1], "RESIZE_BILINEAR": [5, 7]}.get(op)
    constants = [Tensor.from_array("c", np.array(operands, np.int32))] if operands else []
    output = flow(
        "y", UNIT if op in ("TANH", "LOGISTIC", "SOFTMAX") else Quantization(3e-4) if op in ("ADD", "SUB") else scale
    )
    arrays = [drawing_int16.int16(rng, *shape) for _ in inputs]
    graph = graph_of([Node(op, [*inputs, *constants], [output], attributes)], inputs, [output])
    native = (op, attributes, count) in NATIVE
    compare(graph.nodes, inputs, [output], arrays, native=native)
    assert native or any(isinstance(step, HostStep) for step in run(graph, arrays)[1])


def linear(rng, op, x_shape, w_shape, bias, spread=1.0, axis=0):
    """(x, its array, operands, output) with scales for which results fill int16, some channels beyond it."""
    out = w_shape[axis]
    depth = int(np.prod(w_shape)) // out
    scales = (0.01 * 10.0 ** rng.uniform(-spread, spread, out)).astype(np.float32)
    x = Tensor("x", INT16, x_shape, Quantization(1e-4))
    weights = Tensor.from_array("w", rng.integers(-127, 128, w_shape).astype(np.int8), Quantization(scales, 0, axis))
    operands = [x, weights]
    if bias is not None:
        terms = rng.integers(-(2**20), 2**20, out).astype(bias)
        operands.append(Tensor.from_array("b", terms, Quantization(scales * np.float32(1e-4), 0, 0)))
    output = flow("y", 1e-4 * 0.01 * 70 * 19000 * np.sqrt(depth) / 20000)
    return x, drawing_int16.int16(rng, *x_shape), operands, output


BIASES = [None, np.int64, np.int32]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("requantization", ["TFLITE_DOUBLE", "FP32_ROUND_EVEN"])
@pytest.mark.parametrize(
    ("x_shape", "w_shape", "attributes"),
    [
        ((2, 5, 6, 7), (35, 1, 1, 7), a.Conv2DAttributes()),
        ((1, 9, 11, 40), (17, 3, 3, 40), a.Conv2DAttributes(2, 1, padding="SAME", activation="RELU")),
        ((1, 7, 7, 6), (10, 3, 2, 3), a.Conv2DAttributes(dilation_h=2, padding="SAME")),  # groups
        ((1, 3, 3, 300), (5, 1, 1, 300), a.Conv2DAttributes(padding="EXPLICIT", pads=(1, 0, 0, 2))),
    ],
)
def test_convolutions(x_shape, w_shape, attributes, bias, requantization, rng):
    x, array, operands, y = linear(rng, "CONV_2D", x_shape, w_shape, bias)
    (result,) = compare(
        [Node("CONV_2D", operands, [y], attributes)], [x], [y], [array], threads=2, requantization=requantization
    )
    assert len(np.unique(result)) > 20


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("channels", [4, 17])
def test_convolutions_of_volumes(channels, bias, rng):
    attributes = a.Conv3DAttributes(stride_d=2, stride_w=2, dilation_h=2, padding="SAME", activation="RELU")
    shape = (2, 3, 2, channels, 20)
    x, array, operands, y = linear(rng, "CONV_3D", (1, 5, 6, 7, channels), shape, bias, axis=4)
    compare([Node("CONV_3D", operands, [y], attributes)], [x], [y], [array], threads=2)
    shape = (2, 3, 2, 20, channels)
    x, array, (_, *others), y = linear(rng, "CONV_3D_TRANSPOSE", (1, 3, 6, 4, channels), shape, bias, axis=3)
    size = Tensor.from_array("shape", np.array([1, 5, 6, 7, 20], np.int32))
    node = Node("CONV_3D_TRANSPOSE", [size, others[0], x, *others[1:]], [y], attributes)
    compare([node], [x], [y], [array], threads=2)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(("rows", "depth", "out"), [(1, 300, 33), (7, 16, 16), (5, 1, 3)])
def test_dense_layers(rows, depth, out, bias, rng):
    x, array, operands, y = linear(rng, "FULLY_CONNECTED", (rows, depth), (out, depth), bias)
    compare([Node("FULLY_CONNECTED", operands, [y], a.FullyConnectedAttributes())], [x], [y], [array], threads=2)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("channels", [3, 16, 37])
def test_depthwise_convolutions(channels, multiplier, bias, rng):
    out = channels * multiplier
    x, array, operands, y = linear(rng, "DEPTHWISE_CONV_2D", (2, 8, 9, channels), (1, 3, 5, out), bias, axis=3)
    attributes = a.Conv2DAttributes(2, 1, padding="SAME", activation="RELU6")
    compare([Node("DEPTHWISE_CONV_2D", operands, [y], attributes)], [x], [y], [array], threads=2)


def test_sums_beyond_32_bits(rng):
    """All products at their largest, of more depth than 32 bits can sum."""
    x, _, operands, y = linear(rng, "FULLY_CONNECTED", (3, 1000), (4, 1000), None)
    operands[1] = Tensor.from_array("w", np.full((4, 1000), -127, np.int8), operands[1].quantization)
    y.quantization = Quantization(1.0)
    array = np.full((3, 1000), -32768, np.int16)
    compare([Node("FULLY_CONNECTED", operands, [y], a.FullyConnectedAttributes())], [x], [y], [array])


def test_sums_that_wrap_to_32_bits(rng):
    """Beside a bias of int32, in dense layers too."""
    x, _, operands, y = linear(rng, "FULLY_CONNECTED", (3, 1000), (4, 1000), np.int32)
    operands[1] = Tensor.from_array("w", np.full((4, 1000), -127, np.int8), operands[1].quantization)
    operands[2] = Tensor.from_array("b", np.array([2**31 - 1, -(2**31), 0, 12345], np.int32), operands[2].quantization)
    y.quantization = Quantization(1e-2)
    array = np.stack([np.full(1000, -32768), np.full(1000, 32767), np.arange(1000)]).astype(np.int16)
    (result,) = compare([Node("FULLY_CONNECTED", operands, [y], a.FullyConnectedAttributes())], [x], [y], [array])
    assert np.unique(result).size > 3


@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 7, 17, 33]), min_size=1, max_size=4).map(tuple),
    op=st.sampled_from(["MEAN", "REDUCE_MAX", "REDUCE_MIN"]),
    scales=st.tuples(drawing_int16.quantizations(1e-5, 1e-2), drawing_int16.quantizations(1e-5, 1e-2)),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_reductions(shape, op, scales, seed, data):
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = Tensor.from_array(
        "axes", np.arange(first, data.draw(st.integers(first, len(shape) - 1)) + 1, dtype=np.int32)
    )
    x, y = Tensor("x", INT16, shape, scales[0]), flow("y", scales[op == "MEAN"])
    node = Node(op, [x, axes], [y], a.ReduceAttributes(data.draw(st.booleans())))
    compare([node], [x], [y], [drawing_int16.int16(np.random.default_rng(seed), *shape)], threads=2)


@pytest.mark.parametrize("end", [-32768, 32767])
def test_means_of_many_ends(end):
    """The largest sums that are made of 32 bits, and more numbers than that by the reference."""
    for count, native in ((1 << 15, True), ((1 << 15) + 1, False)):
        x, y = Tensor("x", INT16, (1, count), Quantization(2e-4)), flow("y", 3e-4)
        node = Node("MEAN", [x, Tensor.from_array("axes", np.array([1], np.int32))], [y], a.ReduceAttributes())
        arrays = [np.full((1, count), end, np.int16)]
        compare([node], [x], [y], arrays, native=native)
        steps = run(graph_of([node], [x], [y]), arrays)[1]
        assert any(isinstance(step, HostStep) for step in steps) != native


@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 17, 64, 300]), min_size=1, max_size=3).map(tuple),
    scale=drawing_int16.quantizations(1e-6, 1e-1),
    beta=st.sampled_from([1.0, 0.25, 3.0]),
    seed=st.integers(0, 99),
)
def test_softmax(shape, scale, beta, seed):
    x, y = Tensor("x", INT16, shape, scale), flow("y", UNIT)
    array = drawing_int16.int16(np.random.default_rng(seed), *shape)
    compare([Node("SOFTMAX", [x], [y], a.SoftmaxAttributes(beta))], [x], [y], [array], threads=2)


@pytest.mark.parametrize("spread", [1, 100, 3000, 65535])
def test_softmax_of_all_differences(spread):
    """All of int16 in rows of 256, and rows of numbers that are close to each other."""
    rows = np.arange(-32768, 32768).reshape(256, 256)
    array = np.concatenate([rows, rows.T, rows // 256 * (spread // 256), np.full((1, 256), 7)]).astype(np.int16)
    x, y = Tensor("x", INT16, array.shape, Quantization(10 / spread)), flow("y", UNIT)
    (result,) = compare([Node("SOFTMAX", [x], [y], a.SoftmaxAttributes())], [x], [y], [array])
    np.testing.assert_array_equal(result[-1], 128)


@pytest.mark.parametrize("op", ["MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("shapes", [((3, 5, 7), (3, 5, 7)), ((3, 5, 7), (7,)), ((3, 1, 7), (1, 5, 1))])
def test_the_larger_and_the_smaller(op, shapes, rng):
    inputs = [Tensor("x", INT16, shape, Quantization(2e-4)) for shape in shapes]
    arrays = [drawing_int16.int16(rng, *shape) for shape in shapes]
    y = flow("y", 2e-4)
    compare([Node(op, inputs, [y], None)], inputs, [y], arrays)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("scales", [(2e-4, 7e-4, 1e-3), (2.0**-10, 2.0**-8, 2.0**-8), (2.0**-10, 2.0**-8, 2.0**-3)])
@pytest.mark.parametrize("shapes", [((3, 5, 7), (3, 5, 7)), ((3, 5, 7), (7,)), ((3, 1, 7), (1, 5, 1))])
def test_broadcasting(op, scales, shapes, rng):
    inputs = [Tensor("x", INT16, shape, Quantization(s)) for shape, s in zip(shapes, scales, strict=False)]
    y = flow("y", scales[2] if op != "MUL" else 2e-2)
    arrays = [drawing_int16.int16(rng, *shape) for shape in shapes]
    for rule in ("TFLITE_DOUBLE", "FP32_ROUND_EVEN"):
        node = Node(op, inputs, [y], a.ArithmeticAttributes())
        compare([node], inputs, [y], arrays, requantization=rule)


@pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("channels", [1, 16, 17])
def test_memory_outside_of_operands_is_not_touched(channels, at_end, rng):
    def check(op, x_shape, w_shape, attributes, axis=0):
        x, array, operands, y = linear(rng, op, x_shape, w_shape, np.int64, axis=axis)
        node = Node(op, operands, [y], attributes)
        arrays = [array, *(t.value for t in operands[1:])]
        for result, expected in zip(
            run_guarded(node, {x: array}, at_end), evaluate.run_node(node, arrays), strict=True
        ):
            np.testing.assert_array_equal(result, expected)

    same = a.Conv2DAttributes(padding="SAME")
    check("CONV_2D", (1, 5, 6, channels), (7, 3, 2, channels), same)
    check("CONV_2D", (1, 5, 6, channels), (channels, 1, 1, channels), a.Conv2DAttributes())
    check("FULLY_CONNECTED", (5, channels), (channels, channels), a.FullyConnectedAttributes())
    check("DEPTHWISE_CONV_2D", (1, 5, 6, channels), (1, 3, 2, 2 * channels), same, axis=3)
    for op, attributes in (("MAX_POOL_2D", a.Pool2DAttributes(3, 2)), ("ADD", a.ArithmeticAttributes())):
        inputs = [Tensor(f"x{i}", INT16, (1, 5, 6, channels), Quantization(2e-4)) for i in range(1 + (op == "ADD"))]
        arrays = [drawing_int16.int16(rng, 1, 5, 6, channels) for _ in inputs]
        node = Node(op, inputs, [flow("y", 2e-4)], attributes)
        (result,) = run_guarded(node, dict(zip(inputs, arrays, strict=True)), at_end)
        np.testing.assert_array_equal(result, evaluate.run_node(node, arrays)[0])
    x, array = Tensor("x", INT16, (1, 5, 6, channels), Quantization(2e-4)), drawing_int16.int16(rng, 1, 5, 6, channels)
    for axes in ([1, 2], [3]):
        operands = [x, Tensor.from_array("axes", np.array(axes, np.int32))]
        for op in ("MEAN", "REDUCE_MAX"):
            node = Node(op, operands, [flow("y", 2e-4)], a.ReduceAttributes())
            (result,) = run_guarded(node, {x: array}, at_end)
            np.testing.assert_array_equal(result, evaluate.run_node(node, [array, operands[1].value])[0])
    node = Node("SOFTMAX", [x], [flow("y", UNIT)], a.SoftmaxAttributes())
    (result,) = run_guarded(node, {x: array}, at_end)
    np.testing.assert_array_equal(result, evaluate.run_node(node, [array])[0])


@pytest.mark.parametrize(
    ("op", "operand", "attributes"),
    [
        ("PAD", [[0, 0], [1, 1], [0, 2], [0, 0]], None),
        ("TRANSPOSE", [0, 3, 1, 2], None),
        ("TILE", [1, 2, 1, 1], None),
        ("STRIDED_SLICE", None, a.StridedSliceAttributes()),
        ("CONCATENATION", None, a.AxisAttributes(-1)),
    ],
)
def test_movements_have_kernels(op, operand, attributes, rng):
    x, output = Tensor("x", INT16, (1, 4, 4, 3), Quantization(2e-4)), flow("y", 2e-4)
    operands = [operand] if operand else [[0, 1, 0, 0], [1, 4, 4, 3], [1, 2, 1, 1]] if op == "STRIDED_SLICE" else []
    constants = [Tensor.from_array("c", np.array(o, np.int32)) for o in operands]
    inputs = [x, x] if op == "CONCATENATION" else [x, *constants]
    compare([Node(op, inputs, [output], attributes)], [x], [output], [drawing_int16.int16(rng, 1, 4, 4, 3)])
