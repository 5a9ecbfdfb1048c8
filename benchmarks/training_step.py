"""What compressing costs while a model trains: steps with xnn's callbacks beside steps of the bare model.

    python -m benchmarks.training_step [--steps 300] [--keras tf_keras] [--net lenet5]

Every variant is a model of its own; their steps take turns, one batch each, as `fit` would run them (callbacks called,
batches from a `tf.data` iterator), so that whatever else the machine does meets all alike. Told is the median of
the steps' times, their mean (masks change every 100 steps), and both as ratios to the bare model.
"""

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import xnn_tf

WARM_UP = 10
Callbacks = Callable[[], list[Any]]

VARIANTS: dict[str, Callbacks] = {
    "bare": list,
    "PruneCallback": lambda: [xnn_tf.PruneCallback(0.8, end=0.5)],
    "ClusterCallback": lambda: [xnn_tf.ClusterCallback(16)],
}


PREPARED: dict[str, Callable[[Any], Any]] = {"quantize_aware": xnn_tf.quantize_aware}
"""Variants whose model is made of the bare one."""
VARIANTS.update(dict.fromkeys(PREPARED, list))


def dense(keras: Any) -> Any:
    return keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(300, "relu"),
            keras.layers.Dense(100, "relu"),
            keras.layers.Dense(10),
        ]
    )


def lenet5(keras: Any) -> Any:
    return keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Conv2D(20, 5),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(50, 5),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(500, "relu"),
            keras.layers.Dense(10),
        ]
    )


def resnet(keras: Any) -> Any:
    """ResNet-8's shape: three residual blocks of 16, 32 and 64 channels."""
    inputs = keras.layers.Input((32, 32, 3))
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(keras.layers.Conv2D(16, 3, padding="same")(inputs)))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        y = keras.layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
        y = keras.layers.ReLU()(keras.layers.BatchNormalization()(y))
        y = keras.layers.BatchNormalization()(keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(y))
        short = x if stride == 1 else keras.layers.Conv2D(filters, 1, strides=stride)(x)
        x = keras.layers.ReLU()(keras.layers.Add()([short, y]))
    return keras.Model(inputs, keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(x)))


NETS = {"dense": dense, "lenet5": lenet5, "resnet": resnet}


class Trained:
    """One variant in training: `step` runs a batch as `fit` does, and returns the seconds that it took."""

    def __init__(self, keras: Any, net: str, variant: str, steps: int, batch: int) -> None:
        keras.utils.set_random_seed(0)
        self.model = NETS[net](keras)
        if variant in PREPARED:
            self.model = PREPARED[variant](self.model)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
        self.model.make_train_function()
        random = np.random.default_rng(0)
        x = random.normal(size=(8 * batch, *self.model.input_shape[1:])).astype(np.float32)
        y = random.integers(0, 10, 8 * batch)
        self._batches = iter(tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch).prefetch(2))
        self._number = 0
        self._callbacks = keras.callbacks.CallbackList(VARIANTS[variant](), model=self.model, epochs=1, steps=steps)
        self._callbacks.on_train_begin()
        self._callbacks.on_epoch_begin(0)

    def step(self) -> float:
        start = time.perf_counter()
        self._callbacks.on_train_batch_begin(self._number)
        logs = self.model.train_function(self._batches)
        np.asarray(logs["loss"])  # until it is computed
        self._callbacks.on_train_batch_end(self._number, logs)
        self._number += 1
        return time.perf_counter() - start


def measure(keras: Any, net: str, steps: int, batch: int, chosen: list[str]) -> dict[str, np.ndarray]:
    """Seconds of each step, by variant."""
    trained = {name: Trained(keras, net, name, steps + WARM_UP, batch) for name in chosen}
    seconds: dict[str, list[float]] = {name: [] for name in trained}
    for turn in range(steps + WARM_UP):
        for name, variant in trained.items():
            taken = variant.step()
            if turn >= WARM_UP:
                seconds[name].append(taken)
    return {name: np.array(taken) for name, taken in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--keras", choices=("keras", "tf_keras"), default="tf_keras")
    parser.add_argument("--net", choices=tuple(NETS), default="lenet5")
    parser.add_argument("--variants", nargs="*", choices=tuple(VARIANTS), default=list(VARIANTS))
    options = parser.parse_args()
    chosen = list(dict.fromkeys(["bare", *options.variants]))
    keras = importlib.import_module(options.keras)
    seconds = measure(keras, options.net, options.steps, options.batch, chosen)
    bare = seconds["bare"]
    print(f"{options.net}, {options.keras} {keras.__version__}, batches of {options.batch}, {options.steps} steps each")
    print(f"{'':20}{'median ms':>12}{'mean ms':>12}{'median ratio':>14}{'mean ratio':>12}")
    for name, taken in seconds.items():
        ratios = np.median(taken) / np.median(bare), taken.mean() / bare.mean()
        print(f"{name:20}{1e3 * np.median(taken):12.2f}{1e3 * taken.mean():12.2f}{ratios[0]:14.3f}{ratios[1]:12.3f}")


if __name__ == "__main__":
    main()
