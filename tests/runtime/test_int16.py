"""int16 activations have no kernels of their own: the engine runs them by the references, and movements natively."""

import numpy as np
import pytest

from runtime.plan import HostStep
from schema import Node, Quantization, Tensor
from schema.ops import attributes as a
from tests.support import drawing_int16
from tests.support.engine import compare, graph_of, run

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


@pytest.mark.parametrize(
    ("op", "attributes", "count"),
    [
        ("ADD", a.ArithmeticAttributes(), 2), ("MUL", a.ArithmeticAttributes("RELU6"), 2), ("MAXIMUM", None, 2),
        ("LEAKY_RELU", a.AlphaAttributes(0.1), 1), ("ABS", None, 1), ("TANH", None, 1), ("LOGISTIC", None, 1),
        ("EXP", None, 1), ("MEAN", a.ReduceAttributes(), 1), ("REDUCE_MAX", a.ReduceAttributes(), 1),
        ("QUANTIZE", a.DTypeAttributes(INT16), 1), ("BATCH_MATMUL", a.BatchMatMulAttributes(False, True), 2),
        ("AVERAGE_POOL_2D", a.Pool2DAttributes(2, 2), 1), ("RESIZE_BILINEAR", a.ResizeAttributes(), 1),
    ],
)  # fmt: skip
def test_arithmetic_is_the_reference(op, attributes, count, rng):
    shape, scale = (1, 4, 4, 3), Quantization(2e-4)
    inputs = [Tensor(f"x{i}", INT16, shape, scale) for i in range(count)]
    operands = {"MEAN": [1, 2], "REDUCE_MAX": [1], "RESIZE_BILINEAR": [5, 7]}.get(op)
    constants = [Tensor.from_array("c", np.array(operands, np.int32))] if operands else []
    output = flow("y", UNIT if op in ("TANH", "LOGISTIC") else Quantization(3e-4) if op == "ADD" else scale)
    arrays = [drawing_int16.int16(rng, *shape) for _ in inputs]
    graph = graph_of([Node(op, [*inputs, *constants], [output], attributes)], inputs, [output])
    compare(graph.nodes, inputs, [output], arrays, native=False)
    assert any(isinstance(step, HostStep) for step in run(graph, arrays)[1])


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
