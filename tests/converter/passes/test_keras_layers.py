"""What Keras layers and blocks become after all passes, from Keras 3 and from tf_keras, and that it computes what
Keras does.
"""

import importlib

import numpy as np
import pytest

from converter.frontends import tensorflow
from converter.passes import manager
from schema import evaluate
from schema.graph import Graph
from tests.converter.passes.building import names
from tests.support.keras_parity import compare, outputs, randomize

IMAGE, LINE, LONG = (9, 8, 4), (12, 4), (None, 4)


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request):
    return importlib.import_module(request.param)


def stack(*make):
    """Layers one after another: each `make` gets keras.layers."""

    def build(keras, x):
        for layer in make:
            x = layer(keras.layers)(x)
        return x

    return build


def batch_norm(L):
    return L.BatchNormalization()


def relu(L):
    return L.ReLU()


def depthwise_then_pointwise(keras, x):
    L = keras.layers
    x = L.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
    x = L.ReLU(6.0)(L.BatchNormalization()(x))
    x = L.Conv2D(8, 1, use_bias=False)(x)
    return L.ReLU(6.0)(L.BatchNormalization()(x))


def squeeze_and_excite(keras, x):
    """MobileNetV3's, hard sigmoid spelled with relu6, and its hard-swish."""
    L = keras.layers

    def hard_sigmoid(y):
        return L.Rescaling(1 / 6)(L.ReLU(6.0)(L.Rescaling(1.0, 3.0)(y)))

    gate = L.Reshape((1, 1, 4))(L.GlobalAveragePooling2D()(x))
    gate = L.Conv2D(2, 1, activation="relu")(gate)
    gate = hard_sigmoid(L.Conv2D(4, 1)(gate))
    y = L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(L.Multiply()([x, gate])))
    return L.Multiply()([y, hard_sigmoid(y)])


def residual(keras, x):
    L = keras.layers
    y = L.ReLU()(L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(x)))
    y = L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(y))
    return L.ReLU()(L.Add()([x, y]))


def residual_1d(keras, x):
    L = keras.layers
    y = L.ReLU()(L.BatchNormalization()(L.Conv1D(4, 3, padding="same")(x)))
    y = L.BatchNormalization()(L.Conv1D(4, 3, padding="same")(y))
    return L.ReLU()(L.Add()([x, y]))


def dense_block(keras, x):
    L = keras.layers
    y = L.Conv2D(2, 3, padding="same")(L.ReLU()(L.BatchNormalization()(x)))
    y = L.Concatenate()([x, y])
    return L.Conv2D(3, 1)(L.ReLU()(L.BatchNormalization()(y)))


def conv_next(keras, x):
    L = keras.layers
    y = L.Conv2D(4, 7, padding="same", groups=4)(x)
    y = L.LayerNormalization(epsilon=1e-6)(y)
    y = L.Dense(4)(L.Activation("gelu")(L.Dense(8)(y)))
    return L.Add()([x, y])


def attention(keras, x):
    return keras.layers.MultiHeadAttention(2, 3)(x, x)


CONV, DEPTHWISE, DENSE, NORM = "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", ["MUL", "ADD"]
STATISTICS = ["MEAN", "SQUARED_DIFFERENCE", "MEAN", "ADD", "RSQRT", "SUB", "MUL"]

# name: (input shape, model, ops; by the Keras that spells it, where they differ)
BLOCKS = {
    "conv, bn, relu": (IMAGE, stack(lambda L: L.Conv2D(5, 3), batch_norm, relu), [CONV]),
    "conv, bn, relu6": (IMAGE, stack(lambda L: L.Conv2D(5, 3), batch_norm, lambda L: L.ReLU(6.0)), [CONV]),
    "conv, bn, relu of 1": (IMAGE, stack(lambda L: L.Conv2D(5, 3), batch_norm, lambda L: L.ReLU(1.0)), [CONV]),
    "dilated conv, bn, relu": (
        IMAGE,
        stack(lambda L: L.Conv2D(5, 3, dilation_rate=2, padding="same"), batch_norm, relu),
        [CONV],
    ),
    "dilated conv of unknown size, bn, relu": (
        (None, None, 4),
        stack(lambda L: L.Conv2D(5, 3, dilation_rate=(2, 3), padding="same"), batch_norm, relu),
        [CONV],
    ),
    "dilated conv3d": (
        (6, 5, 7, 2),
        stack(lambda L: L.Conv3D(3, 2, dilation_rate=2, padding="same"), batch_norm, relu),
        ["CONV_3D"],
    ),
    "bn on axis 1": (IMAGE, stack(lambda L: L.Conv2D(5, 3), lambda L: L.BatchNormalization(axis=1)), [CONV, *NORM]),
    "depthwise multiplier 2, bn": (
        IMAGE,
        stack(lambda L: L.DepthwiseConv2D(3, depth_multiplier=2), batch_norm, relu),
        [DEPTHWISE],
    ),
    "mobile block": (IMAGE, depthwise_then_pointwise, [DEPTHWISE, CONV]),
    "separable": (
        IMAGE,
        stack(lambda L: L.SeparableConv2D(5, 3, dilation_rate=2), batch_norm, relu),
        [DEPTHWISE, CONV],
    ),
    "transposed conv, bn, relu": (
        IMAGE,
        stack(lambda L: L.Conv2DTranspose(3, 3, strides=2), batch_norm, relu),
        ["SHAPE", "STRIDED_SLICE", "PACK", "TRANSPOSE_CONV"],
    ),
    "zero padding, conv": (IMAGE, stack(lambda L: L.ZeroPadding2D(1), lambda L: L.Conv2D(5, 3, strides=2)), [CONV]),
    "relu, zero padding, max": (
        IMAGE,
        stack(relu, lambda L: L.ZeroPadding2D(1), lambda L: L.MaxPooling2D(3, 2)),
        ["MAX_POOL_2D"],
    ),
    "zero padding, max": (
        IMAGE,
        stack(lambda L: L.ZeroPadding2D(1), lambda L: L.MaxPooling2D(3, 2)),
        ["PAD", "MAX_POOL_2D"],
    ),
    "dense, bn, relu": ((7,), stack(lambda L: L.Dense(5), batch_norm, relu), [DENSE]),
    "bn, dense": ((7,), stack(batch_norm, lambda L: L.Dense(5)), [DENSE]),
    "dense on rank 3": ((5, 7), stack(lambda L: L.Dense(5, activation="relu")), [DENSE]),
    "dense on unknown steps": ((None, 7), stack(lambda L: L.Dense(5, activation="relu")), [DENSE]),
    "flatten, dense": (IMAGE, stack(lambda L: L.Flatten(), lambda L: L.Dense(5)), ["RESHAPE", DENSE]),
    "rescaling, conv": (IMAGE, stack(lambda L: L.Rescaling(1 / 127.5, -1), lambda L: L.Conv2D(5, 3)), [CONV]),
    "rescaling, same conv": (
        IMAGE,
        stack(lambda L: L.Rescaling(1 / 127.5, -1), lambda L: L.Conv2D(5, 3, padding="same")),
        ["ADD", CONV],
    ),
    "causal conv1d, bn, relu": (
        LINE,
        stack(lambda L: L.Conv1D(5, 3, padding="causal", dilation_rate=2), batch_norm, relu),
        ["EXPAND_DIMS", CONV, "SQUEEZE"],
    ),
    "two conv1d": (
        LONG,
        stack(lambda L: L.Conv1D(5, 3), batch_norm, relu, lambda L: L.Conv1D(4, 3, padding="same")),
        ["EXPAND_DIMS", CONV, CONV, "SQUEEZE"],
    ),
    "residual": (IMAGE, residual, [CONV, CONV, "ADD"]),
    "residual of conv1d": (LONG, residual_1d, ["EXPAND_DIMS", CONV, CONV, "ADD", "SQUEEZE"]),
    "MobileNetV3": (IMAGE, squeeze_and_excite, ["MEAN", CONV, CONV, "MUL", "MUL", CONV, "HARD_SWISH"]),
    "DenseNet": (IMAGE, dense_block, [DEPTHWISE, CONV, "CONCATENATION", DEPTHWISE, CONV]),
    "ConvNeXt": (IMAGE, conv_next, [DEPTHWISE, *STATISTICS, DENSE, "GELU", DENSE, "ADD"]),
    "up-sampling": (IMAGE, stack(lambda L: L.UpSampling2D((2, 3))), ["RESIZE_NEAREST_NEIGHBOR"]),
    "layer norm": (
        LINE,
        stack(lambda L: L.LayerNormalization()),
        {"keras": [*STATISTICS, *NORM], "tf_keras": ["RESHAPE", *STATISTICS, "RESHAPE", *NORM]},
    ),
    "group norm": (IMAGE, stack(lambda L: L.GroupNormalization(2)), ["RESHAPE", *STATISTICS, *NORM, "RESHAPE"]),
    "softmax over axis 1": (LINE, stack(lambda L: L.Softmax(axis=1)), ["SOFTMAX"]),
    "prelu": (IMAGE, stack(lambda L: L.PReLU(shared_axes=[1, 2])), ["PRELU"]),
    "prelu of each position": (IMAGE, stack(lambda L: L.PReLU()), ["PRELU"]),
    "leaky relu": (IMAGE, stack(lambda L: L.LeakyReLU()), ["LEAKY_RELU"]),
    "relu with a slope": (IMAGE, stack(lambda L: L.ReLU(negative_slope=0.1)), ["LEAKY_RELU"]),
    "elu of 0.5": (IMAGE, stack(lambda L: L.ELU(0.5)), ["ELU"]),
    "elu": (IMAGE, stack(lambda L: L.Activation("elu")), ["ELU"]),
    "selu": (IMAGE, stack(lambda L: L.Activation("selu")), ["SELU"]),
    "gelu": (IMAGE, stack(lambda L: L.Activation("gelu")), ["GELU"]),
    "swish": (IMAGE, stack(lambda L: L.Activation("swish")), ["SWISH"]),
    "mish": (IMAGE, stack(lambda L: L.Activation("mish")), ["SOFTPLUS", "TANH", "MUL"]),
    "dropout, linear": (
        IMAGE,
        stack(lambda L: L.Conv2D(5, 3), lambda L: L.Dropout(0.5), lambda L: L.Activation("linear"), relu),
        [CONV],
    ),
}


def optimized(keras, shape, build) -> tuple[object, Graph]:
    inputs = keras.Input(shape)
    model = keras.Model(inputs, build(keras, inputs))
    randomize(model, np.random.default_rng(3))
    graph = tensorflow.read(model)
    manager.optimize(graph)
    return model, graph


def check(model, graph, shape, rng, scale=2.0):
    sizes = [11 if size is None else size for size in shape]
    x = rng.normal(0, scale, (3, *sizes)).astype(np.float32)
    compare(evaluate.run(graph, [x]), outputs(model, [x]), 1e-5)


@pytest.mark.parametrize("name", BLOCKS)
def test_block(keras, rng, name):
    shape, build, ops = BLOCKS[name]
    model, graph = optimized(keras, shape, build)
    assert names(graph) == (ops[keras.__name__.rpartition(".")[2]] if isinstance(ops, dict) else ops)
    check(model, graph, shape, rng)


@pytest.mark.parametrize("name", ["hard_silu", "hard_swish", "silu"])
def test_activations_of_keras_3(rng, name):
    import keras

    model, graph = optimized(keras, IMAGE, stack(lambda L: L.Activation(name)))
    assert names(graph) == ["SWISH" if name == "silu" else "HARD_SWISH"]
    check(model, graph, IMAGE, rng)


def test_hard_sigmoid_of_keras_3_is_two_nodes(rng):
    import keras

    model, graph = optimized(keras, IMAGE, stack(lambda L: L.Activation("hard_sigmoid")))
    assert names(graph) == ["ADD", "MUL"]
    check(model, graph, IMAGE, rng)


def test_gelu_by_tanh(keras, rng):
    def build(keras, x):
        return keras.layers.Lambda(lambda y: keras.activations.gelu(y, approximate=True))(x)

    model, graph = optimized(keras, IMAGE, build)
    assert names(graph) == ["GELU"]
    assert graph.nodes[0].attributes.approximate
    check(model, graph, IMAGE, rng)


def test_attention_projects_without_reshaping_biases(keras, rng):
    model, graph = optimized(keras, (6, 8), attention)
    ops = names(graph)
    assert ops.count(DENSE) == 4
    assert ops.count("BATCH_MATMUL") == 2
    assert "ADD" not in ops
    assert "MUL" not in ops
    check(model, graph, (6, 8), rng, scale=0.3)


def test_layer_names_are_keras_names(keras):
    inputs = keras.Input((8, 8, 3))
    L = keras.layers
    x = L.Conv2D(4, 3, padding="same", name="conv1")(inputs)
    x = L.ReLU(name="conv1_relu")(L.BatchNormalization(name="conv1_bn")(x))
    x = L.ZeroPadding2D(1, name="pad")(x)
    outputs = L.DepthwiseConv2D(3, name="dw")(x)
    graph = tensorflow.read(keras.Model(inputs, outputs))
    explanation = manager.optimize(graph)
    assert [node.name for node in graph.nodes] == ["conv1", "dw"]
    assert explanation.of("fold_batch_norm")[0] == "conv1_bn folded into conv1"
    assert explanation.of("fuse_activation") == ["conv1_relu (RELU) fused into conv1"]
    assert explanation.of("fuse_pad") == ["pad fused into dw"]
