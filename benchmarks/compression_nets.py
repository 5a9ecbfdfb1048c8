"""What `benchmarks/compression.py` compresses: the base models of `../shared/zoo`, their data, and to what sizes."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

SHARED = Path(os.environ.get("XNN_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SPLIT_SEED = 1234  # of which training images are held out: the same for all runs

Arrays = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Net:
    """A base model, and how it is fine-tuned.

    Attributes:
        name: in the zoo.
        epochs: by recipe.
        optimizer, learning_rate: of fine-tuning; the same for all recipes.
        weight_decay: by recipe, of fine-tuning (decoupled; Loshchilov and Hutter 2019): Han et al. (2015) retrain with
            an L2 penalty. `xqueeze` has none (benchmarks/NOTES.md tells of trials).
        flip, shift: the augmentation that the base model was trained with.
        sizes: by recipe, bytes that files are to have; the first one is that of the issue's bar.
        held_out: training images by which choices are made.
        precision: of the training: bfloat16 where convolutions take the time.
    """

    name: str
    epochs: Mapping[str, int]
    sizes: Mapping[str, Sequence[int]]
    optimizer: str = "adam"
    learning_rate: float = 2e-3
    weight_decay: Mapping[str, float] = field(default_factory=dict)
    flip: bool = False
    shift: int = 0
    held_out: int = 5000
    precision: str = "float32"


def _zoo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("zoo", SHARED / "zoo/zoo.py")
    assert spec is not None and spec.loader is not None, "there is no ../shared/zoo/zoo.py"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NETS = {
    net.name: net
    for net in (
        Net(
            "lenet_300_100",
            epochs={"xqueeze": 50, "deep-compression": 60},
            sizes={"xqueeze": (17_600, 11_000, 24_000), "deep-compression": (28_100, 17_800, 39_300)},
            weight_decay={"deep-compression": 0.1},
            flip=True,
        ),
        Net(
            "lenet_5",
            epochs={"xqueeze": 24, "deep-compression": 24},
            sizes={"xqueeze": (28_700, 16_000, 40_000), "deep-compression": (46_900, 26_100, 64_800)},
            flip=True,
            shift=1,
            precision="mixed_bfloat16",
        ),
        Net(
            "lenet_300_100_mnist10k",
            epochs={"xqueeze": 120, "deep-compression": 120},
            sizes={"xqueeze": (16_600, 8_000, 5_000), "deep-compression": (27_000, 16_600)},
            shift=2,
            held_out=1000,
        ),
        Net(
            "lenet_5_mnist10k",
            epochs={"xqueeze": 80, "deep-compression": 80},
            sizes={"xqueeze": (26_900, 8_000, 4_000), "deep-compression": (43_000, 26_900)},
            shift=2,
            held_out=1000,
            precision="mixed_bfloat16",
        ),
        Net(
            "squeezenet_cifar",
            epochs={"xqueeze": 30, "deep-compression": 12},
            sizes={"xqueeze": (64_700,), "deep-compression": (249_000, 363_000)},
            optimizer="sgd",
            learning_rate=0.04,
            flip=True,
            shift=4,
            precision="mixed_bfloat16",
        ),
        Net(
            "resnet20",
            epochs={"xqueeze": 20, "deep-compression": 12},
            sizes={"xqueeze": (54_800,), "deep-compression": (110_000,)},
            optimizer="sgd",
            learning_rate=0.04,
            flip=True,
            shift=4,
            precision="mixed_bfloat16",
        ),
    )
}


def load_base(net: Net, keras: ModuleType, recipe: str) -> Any:
    """The base model, compiled for fine-tuning by the recipe in the net's precision."""
    keras.mixed_precision.set_global_policy(net.precision)
    model = _zoo().load(net.name, keras)
    keras.mixed_precision.set_global_policy("float32")
    decay = net.weight_decay.get(recipe)
    optimizers = {
        "adam": lambda: keras.optimizers.Adam(net.learning_rate, weight_decay=decay),
        "sgd": lambda: keras.optimizers.SGD(net.learning_rate, momentum=0.9, nesterov=True, weight_decay=decay),
    }
    model.compile(optimizers[net.optimizer](), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def load_data(net: Net) -> tuple[Arrays, Arrays, Arrays]:
    """(training, validation, test): validation is held out of the training images, the test images are whole."""
    x, y, x_test, y_test = _zoo().data(net.name)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(x))
    valid, train = order[: net.held_out], order[net.held_out :]
    return (x[train], y[train]), (x[valid], y[valid]), (x_test, y_test)


def augmented(net: Net, arrays: Arrays, batch: int, seed: int) -> Any:
    """A `tf.data.Dataset` of shuffled batches, flipped and shifted at random as when the base model was trained."""
    import tensorflow as tf

    def change(x: Any, y: Any) -> tuple[Any, Any]:
        count, height, width = tf.shape(x)[0], x.shape[1], x.shape[2]
        if net.flip:
            x = tf.where(tf.random.uniform([count, 1, 1, 1]) < 0.5, x[:, :, ::-1], x)
        if net.shift:
            pad = net.shift
            x = tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
            down = tf.random.uniform([count], 0, 2 * pad + 1, tf.int32)[:, None] + tf.range(height)[None]
            right = tf.random.uniform([count], 0, 2 * pad + 1, tf.int32)[:, None] + tf.range(width)[None]
            x = tf.gather(tf.gather(x, down, axis=1, batch_dims=1), right, axis=2, batch_dims=1)
        return x, y

    shuffled = tf.data.Dataset.from_tensor_slices(arrays).shuffle(len(arrays[0]), seed=seed)
    return shuffled.batch(batch, drop_remainder=True).map(change).prefetch(2)
