"""Exported Keras -> int8 `.xnn` -> every layer on the engine, against Keras on what that layer got.

Two bounds. The first is sharp: with a layer's stored weights given back to Keras, what the engine gives is Keras's
result rounded to the output's scale. The second needs nothing of the converter but its integers: with Keras's own
weights, the difference is at most that rounding and what the weights' errors make of these inputs, the sum of
|x| |error|, and the bias's error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import converter
import runtime
import schema
from converter.quantize.execution import Execution
from schema import Graph, Node, Tensor, TensorType, ops
from schema.fixedpoint import dequantize
from tests.support.quantized_graphs import quantized_nodes

ROUNDINGS = {"LEAKY_RELU": 0.76, "SOFTMAX": 1.01}
"""In steps; others round once. The specification has LEAKY_RELU round twice, and SOFTMAX compute in fixed point."""
ROUNDING = 0.51
LINEAR = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
FOLDED = {"stem": ("stem_bn", "stem_relu")}
FEW, MANY = 1, 64  # samples: with few, weights are rounded to the nearest; with many, so that their errors cancel


@pytest.fixture(scope="module")
def model():
    import keras

    keras.utils.set_random_seed(7)
    L = keras.layers
    image = keras.Input((13, 12, 3), name="image")
    x = L.Conv2D(8, 3, 2, padding="same", use_bias=False, name="stem")(image)
    x = L.ReLU(6.0, name="stem_relu")(L.BatchNormalization(name="stem_bn")(x))
    x = L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, activation="relu", name="depthwise")(x)
    skip = L.Conv2D(8, 1, name="project")(x)
    x = L.Conv2D(8, (3, 2), padding="same", dilation_rate=2, groups=2, activation="tanh", name="grouped")(skip)
    x = L.Add(name="residual")([skip, x])
    x = L.ZeroPadding2D(((1, 2), (0, 1)), name="pad")(x)
    x = L.MaxPooling2D(3, 1, padding="same", name="max")(x)
    x = L.Conv2D(6, 3, 2, activation="relu6", name="valid")(x)
    x = L.AveragePooling2D(3, 2, padding="same", name="average")(x)
    x = L.LeakyReLU(negative_slope=0.1, name="leaky")(L.Conv2D(6, 3, padding="same", name="same")(x))
    x = L.GlobalAveragePooling2D(name="mean")(x)
    x = L.Dense(12, activation="sigmoid", name="hidden")(x)
    built = keras.Model(image, L.Dense(5, activation="softmax", name="scores")(x), name="net")
    rng = np.random.default_rng(8)
    for layer in built.layers:  # channels of all sizes, biases and statistics that are not 0 and 1
        weights = layer.get_weights()
        if weights and layer.name != "stem_bn":
            size = np.geomspace(0.05, 2, weights[0].shape[-1])
            layer.set_weights([weights[0] * size, *(rng.normal(0, 0.2, b.shape) for b in weights[1:])])
    (n,) = built.get_layer("stem_bn").gamma.shape
    built.get_layer("stem_bn").set_weights(
        [rng.uniform(-1.5, 1.5, n), rng.normal(1, 1, n), rng.normal(0, 0.3, n), rng.uniform(0.2, 2, n)]
    )
    return built


def images(count, seed=9):
    """Not centred, so that zero points are not 0."""
    return np.random.default_rng(seed).normal(0.5, 1, (count, 13, 12, 3)).astype(np.float32)


@pytest.fixture(scope="module", params=[FEW, MANY], ids=["few", "many"])
def samples(request):
    return request.param


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "net"
    model.export(str(path), verbose=False)
    return path


@pytest.fixture(scope="module")
def graph(folder, samples):
    return schema.read(converter.convert(folder, "int8", images(samples)).bytes).graph


@pytest.fixture(scope="module")
def values(graph):
    """What the engine computes for images that were not calibrated with, by tensor."""
    x = images(6, seed=10)
    tensors = [tensor for node in graph.nodes for tensor in node.outputs]
    return {graph.inputs[0]: x, **dict(zip(tensors, Execution(graph, tensors)([x]), strict=True))}


def real(tensor: Tensor, values: dict[Tensor, np.ndarray]) -> np.ndarray:
    array = tensor.value if tensor.is_constant else values[tensor]
    return array if tensor.quantization is None else dequantize(array, tensor.quantization)


def linear_layer(layer: Any, kernel: np.ndarray, bias: np.ndarray) -> Any:
    """A Keras layer like this one with other weights, and no activation."""
    clone = type(layer).from_config({**layer.get_config(), "activation": None, "use_bias": True, "name": "clone"})
    clone.build(layer.input.shape)
    clone.set_weights([kernel.reshape(layer.kernel.shape), bias])
    return clone


def stored(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """(kernel, bias) of a linear node as Keras has them: (h, w, in, out), (h, w, in, multiplier) or (in, out)."""
    kernel, bias = (dequantize(t.value, t.quantization) for t in node.inputs[1:3])
    order = {"CONV_2D": (1, 2, 3, 0), "DEPTHWISE_CONV_2D": (0, 1, 2, 3), "FULLY_CONNECTED": (1, 0)}[node.op]
    return kernel.transpose(order), bias


def original(model: Any, node: Node) -> tuple[np.ndarray, np.ndarray]:
    """The same of the Keras layer, with its BatchNormalization folded into it."""
    layer = model.get_layer(node.name)
    kernel, bias = np.asarray(layer.kernel), np.asarray(layer.bias) if layer.use_bias else 0.0
    for name in FOLDED.get(node.name, ())[:1]:
        norm = model.get_layer(name)
        factor = np.asarray(norm.gamma) / np.sqrt(np.asarray(norm.moving_variance) + norm.epsilon)
        kernel, bias = kernel * factor, (bias - np.asarray(norm.moving_mean)) * factor + np.asarray(norm.beta)
    return kernel, bias


def in_keras(model: Any, node: Node, values: dict[Tensor, np.ndarray]) -> np.ndarray:
    """What Keras makes of a node's inputs, with the stored weights."""
    import keras

    layer = model.get_layer(node.name)
    inputs = [real(t, values) for t in node.inputs if t.quantization is not None and not t.is_constant]
    if node.op in LINEAR:
        result = linear_layer(layer, *stored(node))(*inputs)
        return np.asarray({"NONE": lambda x: x, "RELU": keras.ops.relu, "RELU6": keras.ops.relu6}
                          [node.attributes.activation](result))  # fmt: skip
    if node.op in ("TANH", "LOGISTIC", "SOFTMAX"):
        return np.asarray(layer.activation(*inputs))
    return np.asarray(layer(inputs if len(inputs) > 1 else inputs[0]))


def errors(model: Any, graph: Graph, values: dict[Tensor, np.ndarray]) -> dict[tuple[str, str], np.ndarray]:
    """Of each node, by layer and op: how far its output is from Keras's, in its steps, element by element."""
    found = {}
    for node in quantized_nodes(graph):
        (output,) = node.outputs
        scale, zero_point = output.quantization.scale[0], output.quantization.zero_point[0]
        expected = np.clip(in_keras(model, node, values), (-128 - zero_point) * scale, (127 - zero_point) * scale)
        found[node.name, node.op] = np.abs(real(output, values) - expected) / scale
    return found


def test_every_layer_is_keras_result_rounded(model, graph, values):
    found = errors(model, graph, values)
    names = {layer.name for layer in model.layers} - {"image", *FOLDED["stem"]}
    assert {name for name, _ in found} == names
    assert len(found) == len(names) + 3  # tanh, sigmoid and softmax beside their layers
    for (name, op), error in found.items():
        assert error.max() <= ROUNDINGS.get(op, ROUNDING), (name, op, error.max())


def test_every_layer_is_within_its_weights_errors_of_the_original(model, graph, values, samples):
    checked = 0
    for node in quantized_nodes(graph):
        if node.op not in LINEAR:
            continue
        layer, x, (output,) = model.get_layer(node.name), real(node.inputs[0], values), node.outputs
        (kernel, bias), (kernel_now, bias_now) = original(model, node), stored(node)
        expected = linear_layer(layer, kernel, np.broadcast_to(bias, bias_now.shape))(x)
        clamps = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6)}
        expected = np.clip(np.asarray(expected), *clamps[node.attributes.activation])
        kernel_error = np.abs(kernel - kernel_now.reshape(kernel.shape))
        bound = np.asarray(linear_layer(layer, kernel_error, np.abs(bias - bias_now))(np.abs(x)))
        scale, zero_point = output.quantization.scale[0], output.quantization.zero_point[0]
        inside = np.clip(expected, (-128 - zero_point) * scale, (127 - zero_point) * scale)
        assert (np.abs(real(output, values) - inside) <= bound + ROUNDING * scale).all(), node.name
        weight_steps = kernel_error / node.inputs[1].quantization.scale.reshape(
            kernel.shape[2 if node.op[0] == "D" else -1 :]
        )
        assert weight_steps.max() <= (0.5001 if samples == FEW else 3), (node.name, weight_steps.max())
        checked += 1
    assert checked == 8


def test_the_original_layers_are_those_of_the_model(model):
    """`original` folds as the model computes."""
    x = images(2)
    node = Node("CONV_2D", [], [], None, "stem")
    folded = linear_layer(model.get_layer("stem"), *original(model, node))(x)
    expected = model.get_layer("stem_bn")(model.get_layer("stem")(x), training=False)
    np.testing.assert_allclose(np.asarray(folded), np.asarray(expected), atol=1e-5)


def test_padding_with_anything_but_the_zero_point_would_be_seen(model, graph, values):
    """A convolution that pads with the integer 0."""
    (node,) = [n for n in quantized_nodes(graph) if n.name == "depthwise"]
    x, output = node.inputs[0], node.outputs[0]
    assert x.quantization.zero_point[0] == -128
    padded = np.pad(values[x], ((0, 0), (1, 1), (1, 1), (0, 0)))
    arrays = [padded, *(t.value for t in node.inputs[1:])]
    types = [TensorType(a.shape, a.dtype, t.quantization) for a, t in zip(arrays, node.inputs, strict=True)]
    (wrong,) = ops.get(node.op).reference(
        replace(node.attributes, padding="VALID"),
        arrays,
        types,
        [TensorType(values[output].shape, np.int8, output.quantization)],
    )
    error = errors(model, graph, {**values, output: wrong})["depthwise", node.op]
    assert error.max() > 5
    assert error[:, 1:-1, 1:-1].max() <= ROUNDING


def test_padding_is_the_zero_point(graph, values):
    (node,) = [n for n in quantized_nodes(graph) if n.op == "PAD"]
    padded, zero_point = values[node.outputs[0]], node.outputs[0].quantization.zero_point[0]
    assert zero_point not in (0, -128)
    for border in (padded[:, :1], padded[:, -2:], padded[:, :, -1:]):
        assert (border == zero_point).all()


def test_dense_weights_have_a_scale_for_each_output(model, graph, samples):
    for name, units in (("hidden", 12), ("scores", 5)):
        (node,) = [n for n in quantized_nodes(graph) if n.name == name and n.op == "FULLY_CONNECTED"]
        quantization, kernel = node.inputs[1].quantization, np.asarray(model.get_layer(name).kernel)
        assert (quantization.scale.size, quantization.axis) == (units, 0)
        np.testing.assert_allclose(quantization.scale, np.abs(kernel).max(0) / 127, rtol=1e-6)
        assert quantization.scale.max() > 20 * quantization.scale.min()
        np.testing.assert_array_equal(np.abs(node.inputs[1].value).max(1), 127)


def test_softmax_saturates():
    import keras

    x = keras.Input((4,), name="x")
    built = keras.Model(x, keras.layers.Dense(4, activation="softmax", name="scores")(x))
    built.get_layer("scores").set_weights([40 * np.eye(4, dtype=np.float32), np.zeros(4, np.float32)])
    data = np.eye(4, dtype=np.float32)
    model = runtime.load(converter.convert(built, "int8", data, io_dtype="int8").bytes)
    given = model.inputs[0]
    found = model(np.where(data > 0, 127, given.zero_point).astype(np.int8))
    np.testing.assert_array_equal(found, np.where(data > 0, 127, -128))
    float_model = runtime.load(converter.convert(built, "int8", data).bytes)
    np.testing.assert_array_equal(float_model(data), np.where(data > 0, np.float32(255 / 256), np.float32(0)))
