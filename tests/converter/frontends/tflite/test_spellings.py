"""Operators that the schema spells otherwise, old spellings of options, and how they are refused."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from converter.frontends import tflite
from schema import FormatError, Quantization, UnsupportedError, evaluate
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support.tflite_files import FileBuilder


def options(table: str, **fields):
    result = getattr(tfl, f"{table}T")()
    for name, value in fields.items():
        assert hasattr(result, name)
        setattr(result, name, value)
    return result


def ops_of(graph):
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("shape", [(4, 3), (4,), ()])
def test_select(rng, shape):
    b = FileBuilder()
    condition, x, y, out = b.tensor(bool, shape), *(b.tensor(np.float32, (4, 3)) for _ in range(3))
    b.operator("SELECT", [condition, x, y], [out], options("SelectOptions"))
    arrays = [rng.random(shape) < 0.5, *(rng.normal(size=(4, 3)).astype(np.float32) for _ in range(2))]
    assert_same(b.finish([condition, x, y], [out]), [np.asarray(a) for a in arrays])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_add_n(rng, count):
    b = FileBuilder()
    *terms, out = (b.tensor(np.float32, (4, 3)) for _ in range(count + 1))
    b.operator("ADD_N", terms, [out], options("AddNOptions"))
    assert_same(b.finish(terms, [out]), [rng.normal(size=(4, 3)).astype(np.float32) for _ in terms])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_zeros_like(dtype):
    b = FileBuilder()
    x, out = b.tensor(dtype, (4, 3)), b.tensor(dtype, (4, 3))
    b.operator("ZEROS_LIKE", [x], [out], options("ZerosLikeOptions"))
    assert_same(b.finish([x], [out]), [np.full((4, 3), 7, dtype)])


@pytest.mark.parametrize("quantization", [None, Quantization(0.02, 3)])
def test_relu_0_to_1(rng, quantization):
    b = FileBuilder()
    dtype = np.float32 if quantization is None else np.int8
    x, out = (b.tensor(dtype, (2, 90), None, quantization) for _ in range(2))
    b.operator("RELU_0_TO_1", [x], [out])
    value = rng.normal(0, 2, (2, 90)) if quantization is None else rng.integers(-128, 128, (2, 90))
    assert_same(b.finish([x], [out]), [value.astype(dtype)])


@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_l2_pool(rng, activation, padding):
    b = FileBuilder()
    x = b.tensor(np.float32, (2, 7, 8, 3))
    out = b.tensor(np.float32, ())
    table = options("Pool2DOptions", strideW=1, strideH=2, filterWidth=2, filterHeight=3)
    table.padding = getattr(tfl.Padding, padding)
    table.fusedActivationFunction = getattr(tfl.ActivationFunctionType, activation)
    b.operator("L2_POOL_2D", [x], [out], table)
    assert_same(b.finish([x], [out]), [rng.normal(0, 4, (2, 7, 8, 3)).astype(np.float32)])


@pytest.mark.parametrize(("stored", "shape"), [([3, -1], (3, 4)), ([0], ())])
def test_shape_as_an_option(rng, stored, shape):
    """[0] is how old files write the shape of a scalar."""
    b = FileBuilder()
    size = (12,) if shape else (1,)
    x, out = b.tensor(np.float32, size), b.tensor(np.float32, shape)
    b.operator("RESHAPE", [x], [out], options("ReshapeOptions", newShape=stored))
    graph = assert_same(b.finish([x], [out]), [rng.normal(size=size).astype(np.float32)])
    assert graph.outputs[0].shape == shape


def test_a_slice_with_an_offset(rng):
    """The end counts from the beginning (version 8, which LiteRT's reference kernels do not have)."""
    b = FileBuilder()
    x, out = b.tensor(np.float32, (8, 5)), b.tensor(np.float32, (3, 2))
    operands = [b.constant(v, np.int32) for v in ([2, 1], [3, 2], [1, 1])]
    b.operator("STRIDED_SLICE", [x, *operands], [out], options("StridedSliceOptions", offset=True), version=8)
    value = rng.normal(size=(8, 5)).astype(np.float32)
    (result,) = evaluate.run(tflite.read(b.finish([x], [out])), [value])
    np.testing.assert_array_equal(result, value[2:5, 1:3])


def test_operators_without_options_have_the_defaults(rng):
    b = FileBuilder()
    x, y, out = (b.tensor(np.float32, (2, 3)) for _ in range(3))
    b.operator("ADD", [x, y], [out])
    graph = tflite.read(b.finish([x, y], [out]))
    assert graph.nodes[0].attributes.activation == "NONE"


def test_layers_are_named_after_the_first_of_fused_ones():
    b = FileBuilder()
    x = b.tensor(np.float32, (2, 3))
    y = b.tensor(np.float32, (2, 3), name="block/act/Relu;block/bn/FusedBatchNorm;block/conv/Conv2D")
    z = b.tensor(np.float32, (2, 3), name="")
    b.operator("RELU", [x], [y])
    b.operator("TANH", [y], [z])
    assert [node.name for node in tflite.read(b.finish([x], [z])).nodes] == ["block/act/Relu", "tensor 2"]


def test_outputs_that_no_operator_computes(rng):
    """An input, a constant, and one tensor twice."""
    b = FileBuilder()
    x, y = b.tensor(np.float32, (2, 3)), b.tensor(np.float32, (2, 3))
    constant = b.constant(np.arange(3), np.float32)
    b.operator("NEG", [x], [y])
    graph = tflite.read(b.finish([x], [y, x, constant, y]))
    assert len(set(graph.outputs)) == len(set(graph.output_names)) == 4
    assert_same(b.pack(), [rng.normal(size=(2, 3)).astype(np.float32)])


def refused(b: FileBuilder, message: str, error=UnsupportedError, inputs=(0,), outputs=(1,)):
    with pytest.raises(error, match=message):
        tflite.read(b.finish(list(inputs), list(outputs)))


def pair() -> FileBuilder:
    b = FileBuilder()
    b.tensor(np.float32, (2, 3), name="x")
    b.tensor(np.float32, (2, 3), name="my/layer")
    return b


def test_refusals_name_the_layer():
    b = pair()
    b.operator("ATAN2", [0, 0], [1])
    refused(b, r"layer 'my/layer' \(operator 0, ATAN2\): operator ATAN2 \(version 1\) is not supported; convert")
    b = pair()
    b.operator("CUSTOM", [0], [1], custom="Mystery")
    refused(b, "layer 'my/layer'.*custom operator Mystery is not supported")
    b = pair()
    b.operator("CUSTOM", [0], [1], custom="FlexRoll")
    refused(b, "FlexRoll runs in TensorFlow, not in TFLite: convert the SavedModel")


def test_refused_options():
    b = pair()
    table = options("AddOptions", fusedActivationFunction=tfl.ActivationFunctionType.TANH)
    b.operator("ADD", [0, 0], [1], table)
    refused(b, "layer 'my/layer'.*a fused TANH")
    b = pair()
    table = options("ConcatenationOptions", fusedActivationFunction=tfl.ActivationFunctionType.RELU)
    b.operator("CONCATENATION", [0, 0], [1], table)
    refused(b, "no fused activation", FormatError)
    b = pair()
    b.operator("ADD", [0, 0], [1], options("MulOptions"))
    refused(b, "its options are MulOptions, not AddOptions", FormatError)
    b = FileBuilder()
    x = b.tensor(np.float32, (2, 8))
    weights, out = b.constant(np.zeros((4, 8)), np.float32), b.tensor(np.float32, (2, 4))
    table = options("FullyConnectedOptions", weightsFormat=1)
    b.operator("FULLY_CONNECTED", [x, weights], [out], table)
    refused(b, "format SHUFFLED4x16INT8", inputs=[x], outputs=[out])


def test_refused_dtypes():
    b = pair()
    b.graph.tensors[1].type = tfl.TensorType.COMPLEX64
    b.operator("NEG", [0], [1])
    refused(b, "tensor 1 'my/layer': dtype COMPLEX64")
    b = FileBuilder()
    for name in "xy":
        b.tensor(np.int32, (2, 3), name=name)
    b.operator("TANH", [0], [1])
    refused(b, r"TANH 'y': TANH has no meaning for input int32\[2x3\]")


@pytest.mark.parametrize("per_channel", [False, True])
def test_int8_weights_with_a_zero_point(rng, per_channel):
    """LiteRT's dense layers alone heed one, for the whole tensor."""

    def dense(op, options):
        b = FileBuilder()
        x = b.tensor(np.int8, (2, 3, 3, 4), None, Quantization(0.1, 3))
        scale = [0.1, 0.2, 0.3, 0.4] if per_channel else 0.1
        axis = 3 if op == "DEPTHWISE_CONV_2D" else 0
        shape = (4, 4) if op == "FULLY_CONNECTED" else (1, 1, 1, 4)
        weights = b.constant(rng.integers(-90, 90, shape), np.int8, Quantization(scale, 7, axis))
        bias, out = b.constant(np.zeros(4), np.int32), b.tensor(np.int8, (18, 4), None, Quantization(1.0, 2))
        b.operator(op, [x, weights, bias], [out], options)
        return b.finish([x], [out])

    table = options("DepthwiseConv2DOptions", strideH=1, strideW=1, depthMultiplier=1)
    with pytest.raises(UnsupportedError, match="int8 weights 't1' have a zero point that is not 0"):
        tflite.read(dense("DEPTHWISE_CONV_2D", table))
    content = dense("FULLY_CONNECTED", options("FullyConnectedOptions"))
    if per_channel:
        with pytest.raises(UnsupportedError, match="zero point"):
            tflite.read(content)
    else:
        assert_same(content, [rng.integers(-128, 128, (2, 3, 3, 4)).astype(np.int8)])
