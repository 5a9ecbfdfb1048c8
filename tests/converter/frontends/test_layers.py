"""Every layer that the converter promises to take, from Keras 3 and from tf_keras, against Keras."""

import importlib

import numpy as np
import pytest

from tests.support.keras_parity import check, randomize

IMAGE, LINE, VOLUME, VECTOR = (9, 8, 4), (11, 4), (6, 5, 7, 2), (7,)

# name: (shape of each input, layer from `keras.layers`); `*` marks those that Keras 3 alone has.
LAYERS = {
    "conv1d": (LINE, lambda L: L.Conv1D(6, 3)),
    "conv1d_causal_dilated": (LINE, lambda L: L.Conv1D(6, 3, padding="causal", dilation_rate=2)),
    "conv1d_same_strided": (LINE, lambda L: L.Conv1D(6, 4, strides=2, padding="same", activation="relu")),
    "conv1d_groups": (LINE, lambda L: L.Conv1D(6, 3, groups=2)),
    "conv2d": (IMAGE, lambda L: L.Conv2D(5, 3)),
    "conv2d_same_strided": (IMAGE, lambda L: L.Conv2D(5, (3, 2), strides=2, padding="same")),
    "conv2d_dilated": (IMAGE, lambda L: L.Conv2D(5, 3, dilation_rate=(2, 3), padding="same")),
    "conv2d_dilated_valid": (IMAGE, lambda L: L.Conv2D(5, 3, dilation_rate=2)),
    "conv2d_groups": (IMAGE, lambda L: L.Conv2D(6, 3, groups=2, padding="same", use_bias=False)),
    "conv3d": (VOLUME, lambda L: L.Conv3D(3, (2, 3, 3), strides=(1, 2, 2), padding="same")),
    "conv3d_groups": (VOLUME, lambda L: L.Conv3D(4, 2, groups=2)),
    "separable_conv2d": (IMAGE, lambda L: L.SeparableConv2D(5, 3, depth_multiplier=2, padding="same")),
    "separable_conv1d": (LINE, lambda L: L.SeparableConv1D(5, 3)),
    "depthwise_conv1d": (LINE, lambda L: L.DepthwiseConv1D(3, depth_multiplier=2, padding="same")),
    "depthwise_conv2d": (IMAGE, lambda L: L.DepthwiseConv2D(3, depth_multiplier=3)),
    "depthwise_conv2d_strided": (IMAGE, lambda L: L.DepthwiseConv2D((3, 2), strides=2, padding="same")),
    "depthwise_conv2d_dilated": (IMAGE, lambda L: L.DepthwiseConv2D(3, dilation_rate=2, padding="same")),
    "conv1d_transpose": (LINE, lambda L: L.Conv1DTranspose(3, 3, strides=2, padding="same")),
    "conv2d_transpose": (IMAGE, lambda L: L.Conv2DTranspose(3, 3, strides=2)),
    "conv2d_transpose_same": (IMAGE, lambda L: L.Conv2DTranspose(3, 4, strides=(2, 3), padding="same")),
    "conv2d_transpose_output_padding": (
        IMAGE,
        lambda L: L.Conv2DTranspose(3, 3, strides=2, padding="same", output_padding=1),
    ),
    "conv2d_transpose_output_padding_valid": (
        IMAGE,
        lambda L: L.Conv2DTranspose(3, 3, strides=2, output_padding=(0, 1)),
    ),
    "conv3d_transpose": (VOLUME, lambda L: L.Conv3DTranspose(3, 3, strides=2, padding="same")),
    "max_pooling1d": (LINE, lambda L: L.MaxPooling1D(3, 2, padding="same")),
    "average_pooling1d": (LINE, lambda L: L.AveragePooling1D(2)),
    "max_pooling2d": (IMAGE, lambda L: L.MaxPooling2D((2, 3), (2, 1))),
    "max_pooling2d_same": (IMAGE, lambda L: L.MaxPooling2D(3, 2, padding="same")),
    "average_pooling2d": (IMAGE, lambda L: L.AveragePooling2D(2)),
    "average_pooling2d_same": (IMAGE, lambda L: L.AveragePooling2D(3, 2, padding="same")),
    "max_pooling3d": (VOLUME, lambda L: L.MaxPooling3D(2, padding="same")),
    "average_pooling3d": (VOLUME, lambda L: L.AveragePooling3D((2, 1, 3))),
    "global_average_pooling1d": (LINE, lambda L: L.GlobalAveragePooling1D()),
    "global_max_pooling1d": (LINE, lambda L: L.GlobalMaxPooling1D()),
    "global_average_pooling2d": (IMAGE, lambda L: L.GlobalAveragePooling2D(keepdims=True)),
    "global_max_pooling2d": (IMAGE, lambda L: L.GlobalMaxPooling2D()),
    "global_average_pooling3d": (VOLUME, lambda L: L.GlobalAveragePooling3D()),
    "global_max_pooling3d": (VOLUME, lambda L: L.GlobalMaxPooling3D()),
    "up_sampling1d": (LINE, lambda L: L.UpSampling1D(2)),
    "up_sampling2d_nearest": (IMAGE, lambda L: L.UpSampling2D((2, 3))),
    "up_sampling2d_bilinear": (IMAGE, lambda L: L.UpSampling2D(2, interpolation="bilinear")),
    "up_sampling3d": (VOLUME, lambda L: L.UpSampling3D(2)),
    "resizing": (IMAGE, lambda L: L.Resizing(5, 11)),
    "resizing_nearest": (IMAGE, lambda L: L.Resizing(5, 11, interpolation="nearest")),
    "zero_padding1d": (LINE, lambda L: L.ZeroPadding1D((1, 2))),
    "zero_padding2d": (IMAGE, lambda L: L.ZeroPadding2D(((0, 1), (2, 0)))),
    "zero_padding3d": (VOLUME, lambda L: L.ZeroPadding3D(1)),
    "cropping1d": (LINE, lambda L: L.Cropping1D((1, 2))),
    "cropping2d": (IMAGE, lambda L: L.Cropping2D(((1, 2), (0, 1)))),
    "cropping3d": (VOLUME, lambda L: L.Cropping3D(1)),
    "dense": (VECTOR, lambda L: L.Dense(5, activation="tanh")),
    "dense_on_image": (IMAGE, lambda L: L.Dense(5)),
    "einsum_dense": (LINE, lambda L: L.EinsumDense("abc,cde->abde", output_shape=(None, 3, 2), bias_axes="de")),
    "layer_normalization": (LINE, lambda L: L.LayerNormalization()),
    "layer_normalization_axes": (IMAGE, lambda L: L.LayerNormalization(axis=(1, 2))),
    "group_normalization": (IMAGE, lambda L: L.GroupNormalization(groups=2)),
    "batch_normalization": (IMAGE, lambda L: L.BatchNormalization()),
    "batch_normalization_axis_1": (IMAGE, lambda L: L.BatchNormalization(axis=1)),
    "batch_normalization_axis_2": (IMAGE, lambda L: L.BatchNormalization(axis=2, scale=False)),
    "batch_normalization_vector": (VECTOR, lambda L: L.BatchNormalization(center=False)),
    "unit_normalization": (LINE, lambda L: L.UnitNormalization()),
    "prelu": (IMAGE, lambda L: L.PReLU()),
    "prelu_shared": (IMAGE, lambda L: L.PReLU(shared_axes=(1, 2))),
    "leaky_relu": (VECTOR, lambda L: L.LeakyReLU()),
    "relu": (VECTOR, lambda L: L.ReLU()),
    "relu_max": (VECTOR, lambda L: L.ReLU(max_value=1.0)),
    "relu_six": (VECTOR, lambda L: L.ReLU(6.0)),
    "relu_slope_threshold_max": (VECTOR, lambda L: L.ReLU(max_value=1.0, negative_slope=0.25, threshold=0.5)),
    "relu_threshold": (VECTOR, lambda L: L.ReLU(threshold=0.5)),
    "elu": (VECTOR, lambda L: L.ELU()),
    "elu_alpha": (VECTOR, lambda L: L.ELU(alpha=0.5)),
    "softmax": (VECTOR, lambda L: L.Softmax()),
    "softmax_axis_1": (IMAGE, lambda L: L.Softmax(axis=1)),
    "flatten": (IMAGE, lambda L: L.Flatten()),
    "reshape": (IMAGE, lambda L: L.Reshape((6, -1))),
    "permute": (IMAGE, lambda L: L.Permute((3, 1, 2))),
    "repeat_vector": (VECTOR, lambda L: L.RepeatVector(3)),
    "rescaling": (IMAGE, lambda L: L.Rescaling(1 / 127.5, offset=-1)),
    "normalization": (IMAGE, lambda L: L.Normalization(mean=[0.1, 0.2, 0.3, 0.4], variance=[1.0, 2.0, 3.0, 4.0])),
    "dropout": (VECTOR, lambda L: L.Dropout(0.5)),
    "spatial_dropout2d": (IMAGE, lambda L: L.SpatialDropout2D(0.5)),
    "gaussian_noise": (VECTOR, lambda L: L.GaussianNoise(1.0)),
    "activity_regularization": (VECTOR, lambda L: L.ActivityRegularization(l2=0.1)),
    "time_distributed": (IMAGE, lambda L: L.TimeDistributed(L.Dense(3))),
    "center_crop": (IMAGE, lambda L: L.CenterCrop(5, 5)),
}
ACTIVATIONS = """elu selu gelu swish relu6 hard_sigmoid softplus softsign mish exponential sigmoid tanh softmax linear
    log_softmax""".split()
KERAS_3_ACTIVATIONS = """hard_silu hard_swish silu leaky_relu celu glu hard_tanh hard_shrink soft_shrink tanh_shrink
    squareplus sparse_plus log_sigmoid""".split()
MERGES = {
    "add": lambda L: L.Add(),
    "subtract": lambda L: L.Subtract(),
    "multiply": lambda L: L.Multiply(),
    "maximum": lambda L: L.Maximum(),
    "minimum": lambda L: L.Minimum(),
    "average": lambda L: L.Average(),
    "concatenate": lambda L: L.Concatenate(),
    "concatenate_axis_1": lambda L: L.Concatenate(axis=1),
    "dot": lambda L: L.Dot(axes=2),
    "dot_normalized": lambda L: L.Dot(axes=(1, 1), normalize=True),
}


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request):
    return importlib.import_module(request.param)


def draw(rng, *shape):
    return rng.normal(0, 2, (3, *shape)).astype(np.float32)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(keras, rng, name):
    shape, make = LAYERS[name]
    inputs = keras.Input(shape, name="x")
    model = keras.Model(inputs, make(keras.layers)(inputs))
    randomize(model, rng) if name != "normalization" else None
    check(model, draw(rng, *shape))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(keras, rng, name):
    inputs = keras.Input((3, 16))
    outputs = keras.layers.Activation(name)(inputs) if hasattr(keras.activations, name) else None
    if outputs is None:
        pytest.skip(f"{keras.__name__} has no activation {name}")
    check(keras.Model(inputs, outputs), draw(rng, 3, 16))


@pytest.mark.parametrize("name", KERAS_3_ACTIVATIONS)
def test_activation_of_keras_3(rng, name):
    import keras

    if not hasattr(keras.activations, name):
        pytest.skip(f"this Keras has no activation {name}")
    inputs = keras.Input((3, 16))
    check(keras.Model(inputs, keras.layers.Activation(name)(inputs)), draw(rng, 3, 16))


@pytest.mark.parametrize("name", MERGES)
def test_merge(keras, rng, name):
    a, b = keras.Input((6, 4)), keras.Input((6, 4))
    check(keras.Model([a, b], MERGES[name](keras.layers)([a, b])), draw(rng, 6, 4), draw(rng, 6, 4))


def test_embedding(keras, rng):
    inputs = keras.Input((5,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Embedding(9, 4)(inputs))
    randomize(model, rng)
    check(model, np.array([[0, 1, 2, 3, 4], [8, 7, 6, 5, 4]], np.int32))


@pytest.mark.parametrize("shape", [(7, 6), (3, 4, 6)])
def test_multi_head_attention(keras, rng, shape):
    inputs = keras.Input(shape)
    axes = tuple(range(1, len(shape)))
    layer = keras.layers.MultiHeadAttention(2, 3, value_dim=4, attention_axes=axes)
    model = keras.Model(inputs, layer(inputs, inputs))
    randomize(model, rng)
    check(model, draw(rng, *shape))


def test_causal_attention(keras, rng):
    inputs = keras.Input((7, 6))
    model = keras.Model(inputs, keras.layers.MultiHeadAttention(2, 3)(inputs, inputs, use_causal_mask=True))
    randomize(model, rng)
    check(model, draw(rng, 7, 6))


def test_cross_attention_with_unknown_lengths(keras, rng):
    query, memory = keras.Input((None, 6)), keras.Input((None, 5))
    model = keras.Model([query, memory], keras.layers.MultiHeadAttention(2, 3)(query, memory))
    randomize(model, rng)
    check(model, draw(rng, 4, 6), draw(rng, 7, 5))


def test_unknown_height_and_width(keras, rng):
    inputs = keras.Input((None, None, 3))
    x = keras.layers.Conv2D(4, 3, strides=2, padding="same", activation="relu")(inputs)
    x = keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same")(x)
    x = keras.layers.UpSampling2D(2)(x)
    model = keras.Model(inputs, [x, keras.layers.GlobalAveragePooling2D()(x)])
    randomize(model, rng)
    check(model, draw(rng, 6, 10, 3))
    check(model, draw(rng, 7, 5, 3))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_becomes_float32(keras, rng, policy):
    def build(dtype):
        L = keras.layers
        inputs = keras.Input((8, 8, 3))
        x = L.Conv2D(4, 3, dtype=dtype)(inputs)
        x = L.BatchNormalization(dtype=dtype)(x)
        x = L.GlobalAveragePooling2D(dtype=dtype)(L.ReLU(dtype=dtype)(x))
        return keras.Model(inputs, L.Dense(5, dtype=dtype)(x))

    make = getattr(keras, "DTypePolicy", None) or keras.mixed_precision.Policy
    mixed, plain = build(make(policy)), build("float32")
    randomize(mixed, rng)
    plain.set_weights([np.asarray(w, np.float32) for w in mixed.get_weights()])
    x = draw(rng, 8, 8, 3)
    result = check(plain, x)
    import converter
    import runtime

    ours = runtime.load(converter.convert(mixed).bytes)(x)
    np.testing.assert_allclose(ours, np.asarray(plain(x)), rtol=0, atol=2e-3 * np.abs(ours).max())
    assert converter.convert(mixed).report.nodes == result.report.nodes
