"""Small nets, trained a few steps with quantization, and how far they are from their file."""

from __future__ import annotations

from typing import Any

import numpy as np

import converter
import runtime
import xnn_tf


def images(rng: np.random.Generator, count: int = 96, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a tint for each of four classes."""
    labels = rng.integers(0, 4, count)
    tints = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], np.float32)
    return (rng.normal(size=(count, size, size, 3)) + 2 * tints[labels][:, None, None]).astype(np.float32), labels


def convolutional(keras: Any, momentum: float = 0.99) -> Any:
    """What image classifiers are made of: BatchNorm, with that momentum, to fold, depthwise, a residual, pooling."""
    layers = keras.layers
    inputs = layers.Input((8, 8, 3), name="image")
    x = layers.Conv2D(6, 3, padding="same", use_bias=False, name="conv")(inputs)
    x = layers.ReLU(name="relu")(layers.BatchNormalization(momentum=momentum, name="bn")(x))
    y = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    y = layers.ReLU(6.0, name="relu6")(layers.BatchNormalization(momentum=momentum, name="bn1")(y))
    y = layers.BatchNormalization(momentum=momentum, name="bn2")(layers.Conv2D(6, 1, name="pointwise")(y))
    x = layers.ReLU(name="relu2")(layers.Add(name="add")([x, y]))
    x = layers.AveragePooling2D(2, name="pool")(x)
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    return keras.Model(inputs, layers.Dense(4, name="logits")(x), name="net")


def trained(keras: Any, model: Any, x: Any, y: Any, epochs: int = 3, **arguments: Any) -> Any:
    """The quantize-aware form of a model, after some steps."""
    result = xnn_tf.quantize_aware(model, **arguments)
    # Not "mse": Keras 3 cannot read that back from an HDF5 file, whatever the model.
    loss = "mean_squared_error"
    if np.asarray(y).dtype.kind != "f":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    result.compile(keras.optimizers.Adam(0.01), loss, jit_compile=False)
    result.fit(x, y, epochs=epochs, batch_size=32, verbose=0)
    return result


def step_of(result: converter.Result) -> float:
    """The scale of a file's output."""
    graph = result.report.graph
    (last,) = [node for node in graph.nodes if node.outputs[0] is graph.outputs[0]]
    assert last.op == "DEQUANTIZE"
    return float(last.inputs[0].quantization.scale[0])


def assert_file_agrees(model: Any, x: Any, equal: float = 0.95, within: int = 1) -> converter.Result:
    """The file's outputs are the model's, all within one step or so many, a share of `equal` of them exactly."""
    result = converter.convert(model)
    steps = np.abs(np.asarray(model.predict(x, verbose=0)) - runtime.load(result.bytes)(x)) / step_of(result)
    assert steps.max() < within + 0.01, steps.max()
    assert (steps < 0.5).mean() >= equal, (steps < 0.5).mean()
    return result


def computes_in(result: converter.Result) -> dict[str, set[str]]:
    """dtype by layer."""
    found: dict[str, set[str]] = {}
    for row in result.report.quantization.rows:
        found.setdefault(row.layer, set()).add(row.dtype)
    return found
