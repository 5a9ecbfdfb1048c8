"""16-bit activations: the model gives the file's integers, though the engine rounds by rules of its own."""

import numpy as np
import pytest

import converter
import runtime
import xnn_tf

BRANCHES = {
    "conv": lambda L, x: L.Conv2D(5, 3, padding="same", activation="relu")(x),
    "depthwise": lambda L, x: L.DepthwiseConv2D(3)(x),
    "transposed": lambda L, x: L.Conv2DTranspose(3, 2, 2, activation="relu")(x),
    "separable": lambda L, x: L.SeparableConv2D(3, 2, activation="tanh")(x),
    "normalized": lambda L, x: L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(5, 3)(x))),
    "batch_norm": lambda L, x: L.BatchNormalization()(x),
    "dense": lambda L, x: L.Dense(9, "gelu")(L.Flatten()(x)),
    "einsum": lambda L, x: L.EinsumDense("abcd,de->abce", (6, 6, 5), bias_axes="e")(x),
    "conv_1d": lambda L, x: L.Conv1D(5, 3, activation="relu")(L.Reshape((36, 4))(x)),
    "sigmoid": lambda L, x: L.Activation("sigmoid")(x),
    "tanh": lambda L, x: L.Activation("tanh")(x),
    "softmax": lambda L, x: L.Softmax()(x),
    "gelu": lambda L, x: L.Activation("gelu")(x),
    "relu": lambda L, x: L.ReLU()(x),
    "leaky": lambda L, x: L.LeakyReLU()(x),
    "slopes": lambda L, x: L.PReLU(shared_axes=[1, 2])(x),
    "average": lambda L, x: L.AveragePooling2D(3, 1, "same")(x),
    "mean": lambda L, x: L.GlobalAveragePooling2D()(x),
    "resized": lambda L, x: L.UpSampling2D(3, interpolation="bilinear")(x),
    "joined": lambda L, x: L.Concatenate()([x, L.Conv2D(1, 1)(x)]),
    "larger": lambda L, x: L.Maximum()([x, L.Conv2D(4, 1)(x)]),
    "sum": lambda L, x: L.ReLU()(L.Add()([x, x, L.Conv2D(4, 1)(x)])),
    "difference": lambda L, x: L.Subtract()([x, L.Conv2D(4, 1)(x)]),
    "product": lambda L, x: L.Multiply()([x, L.Conv2D(4, 1)(x)]),
    "dot": lambda L, x: L.Dot(axes=(2, 1))([L.Reshape((36, 4))(x), L.Reshape((4, 36))(x)]),
}

SEQUENCES = {
    "attention": lambda L, x: L.MultiHeadAttention(2, 4)(x, x),
    "causal": lambda L, x: L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True),
    "LSTM": lambda L, x: L.LSTM(5, return_sequences=True)(x),
    "GRU": lambda L, x: L.GRU(5, return_sequences=True)(x),
    "GRU that resets before": lambda L, x: L.GRU(5, reset_after=False, return_sequences=True)(x),
    "both directions": lambda L, x: L.Bidirectional(L.SimpleRNN(5, return_sequences=True))(x),
}


def nonzero(model, rng):
    """Biases, offsets and slopes that do something."""
    model.set_weights([w if np.any(w) else 0.3 * rng.normal(size=w.shape) for w in model.get_weights()])
    return model


def steps_apart(values, result, x):
    """For each output, how many of its steps the model's values are from the file's."""
    found = runtime.load(result.bytes)(x)
    files = list(found.values()) if isinstance(found, dict) else [found]
    makers = {node.outputs[0]: node for node in result.report.graph.nodes}
    scales = [makers[tensor].inputs[0].quantization.scale[0] for tensor in result.report.graph.outputs]
    assert {makers[tensor].inputs[0].dtype for tensor in result.report.graph.outputs} == {np.dtype(np.int16)}
    return [np.abs(np.asarray(v) - f) / s for v, f, s in zip(values, files, scales, strict=True)]


def test_each_kind_of_layer_within_a_step_in_training_and_outside(keras, rng):
    inputs = keras.layers.Input((6, 6, 4))
    outputs = [branch(keras.layers, inputs) for branch in BRANCHES.values()]
    model = nonzero(keras.Model(inputs, outputs), rng)
    x = (rng.normal(size=(16, 6, 6, 4)) * rng.uniform(0.1, 1, (16, 1, 1, 1))).astype(np.float32)
    qat = xnn_tf.quantize_aware(model, {"activations": 16, "freeze_batch_norm": 0})
    qat(x, training=True)
    training = qat(x, training=True)
    result = converter.convert(qat)
    for values, least in ((training, 0.99), (qat.predict(x, verbose=0), 0.995)):
        for name, steps in zip(BRANCHES, steps_apart(values, result, x), strict=True):
            assert steps.max() < 1.01, (name, steps.max())
            assert (steps < 0.5).mean() >= least, (name, (steps < 0.5).mean())


def test_attention_and_recurrent_layers_within_a_step_in_training_and_outside(keras, rng):
    kinds = dict(SEQUENCES)
    if keras.__name__ == "keras":
        kinds["gate"] = lambda L, x: L.MultiHeadAttention(2, 4, use_gate=True)(x, x)
    inputs = keras.layers.Input((6, 8))
    outputs = [keras.layers.Dense(3)(layer(keras.layers, inputs)) for layer in kinds.values()]
    model = nonzero(keras.Model(inputs, outputs), rng)
    x = (rng.normal(size=(64, 6, 8)) * rng.uniform(0.3, 2, (64, 1, 1))).astype(np.float32)
    qat = xnn_tf.quantize_aware(model, {"activations": 16, "momentum": 0.0}, calibration=x)
    for _ in range(4):  # ranges of later steps of the loop depend on those before
        training = qat(x, training=True)
    result = converter.convert(qat)
    for values in (training, qat.predict(x, verbose=0)):
        for name, steps in zip(kinds, steps_apart(values, result, x), strict=True):
            assert steps.max() < 1.01, (name, steps.max())
            assert (steps < 0.5).mean() >= 0.99, (name, (steps < 0.5).mean())


@pytest.mark.parametrize("ranges", ["moving", "learned"])
def test_training_sequences_with_int16_learns(keras, rng, ranges):
    L = keras.layers
    inputs = L.Input((6, 4))
    model = keras.Model(inputs, L.Dense(2)(L.LSTM(6)(L.MultiHeadAttention(2, 3)(inputs, inputs))))
    qat = xnn_tf.quantize_aware(model, {"activations": 16, "ranges": ranges})
    x = rng.normal(size=(64, 6, 4)).astype(np.float32)
    qat.compile(keras.optimizers.Adam(0.02), "mse")
    history = qat.fit(x, x.mean(1)[:, :2], batch_size=32, epochs=12, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0], history
    assert steps_apart([qat.predict(x, verbose=0)], converter.convert(qat), x)[0].max() < 1.01


def test_a_deep_net_within_a_step(keras, rng):
    """Sixteen layers, of which none may add to what the others are off."""
    L = keras.layers
    inputs = x = L.Input((6, 6, 4))
    for function in ("relu", "tanh", "gelu", "relu"):
        y = L.ReLU()(L.BatchNormalization()(L.Conv2D(8, 3, padding="same")(x)))
        y = L.Activation(function)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same")(y)))
        x = L.Add()([y, L.Conv2D(8, 1)(x)])
    model = nonzero(keras.Model(inputs, L.Dense(5)(L.LeakyReLU()(L.Dense(12)(L.Flatten()(x))))), rng)
    data = rng.normal(size=(64, 6, 6, 4)).astype(np.float32)
    qat = xnn_tf.quantize_aware(model, {"activations": 16}, calibration=data)
    result = converter.convert(qat)
    (steps,) = steps_apart([qat.predict(data, verbose=0)], result, data)
    assert steps.max() < 1.01 and (steps < 0.5).mean() > 0.95
    assert np.abs(qat.predict(data, verbose=0)).max() > 100 * steps.max() / 32767


@pytest.mark.parametrize("freeze", [None, 3])
def test_training_with_int16_learns(keras, rng, freeze):
    L = keras.layers
    net = [L.Input((4, 4, 2)), L.Conv2D(6, 1), L.BatchNormalization(momentum=0.8), L.ReLU(), L.Flatten(), L.Dense(2)]
    qat = xnn_tf.quantize_aware(keras.Sequential(net), {"activations": 16, "freeze_batch_norm": freeze})
    x = rng.normal(size=(64, 4, 4, 2)).astype(np.float32)
    qat.compile(keras.optimizers.Adam(0.02), "mse")
    history = qat.fit(x, x.mean((1, 2)), batch_size=32, epochs=8, verbose=0).history["loss"]
    assert history[-1] < 0.5 * history[0]
    result = converter.convert(qat)
    assert steps_apart([qat.predict(x, verbose=0)], result, x)[0].max() < 1.01
