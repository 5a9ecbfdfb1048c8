"""A run that is killed goes on, and ends as one that was not."""

import json
import signal
import subprocess
import sys

import pytest

import xnn_tf

CHILD = """
import os, signal, sys
import numpy as np
import tensorflow as tf
import tf_keras as keras
tf.config.experimental.enable_op_determinism()
import xnn_tf
from xnn_tf.compression import state
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune

folder, when = sys.argv[1:]
keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
centres, labels = rng.normal(size=(4, 16)), rng.integers(0, 4, 384)
points = (centres[labels] + rng.normal(size=(384, 16))).astype("float32")
L = keras.layers
model = keras.Sequential([L.Input((16,)), L.Dense(64, "relu"), L.Dropout(0.1), L.Dense(4)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(points[:256], labels[:256], epochs=5, verbose=0)

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

if when == "in-training":  # in the second level
    fit, done = keras.Model.fit, []
    class Kill(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1 and len(done) == 2:
                kill()
    def killed(self, *arguments, callbacks, **named):
        done.append(1)
        return fit(self, *arguments, callbacks=[*callbacks, Kill()], **named)
    keras.Sequential.fit = killed
if when == "in-writing":  # a step's files are there, and its entry is not
    write = state.State._write
    def killed(self, name, content):
        if name == "state.json" and b"level-2/prune" in content:
            kill()
        return write(self, name, content)
    state.State._write = killed
recipe = Recipe("test", (Prune(levels=255),), (Conversion("int8-weights"),), (2.0, 0.5), first_ratio=6.0, levels=2)
result = xnn_tf.compress(
    model, (points[:256], labels[:256]), (points[256:], labels[256:]), max_drop=0.1, recipe=recipe, epochs=3,
    batch_size=64, folder=folder, verbose=False)
result.save(folder + "/result.xnn")
np.savez(folder + "/result.npz", *result.model.get_weights())
"""


def run(repository, folder, when):
    command = [sys.executable, "-c", CHILD, str(folder), when]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.slow
def test_killed_twice_and_resumed(repository, tmp_path):
    whole = run(repository, tmp_path / "whole", "never")
    assert whole.returncode == 0, whole.stderr

    folder = tmp_path / "killed"
    for when, last in (("in-training", "level-1/int8-weights"), ("in-writing", "level-1/int8-weights")):
        assert run(repository, folder, when).returncode == -signal.SIGKILL
        steps = json.loads((folder / "state.json").read_text())["steps"]
        assert steps[-1]["name"] == last
    resumed = run(repository, folder, "never")
    assert resumed.returncode == 0, resumed.stderr

    for name in ("result.xnn", "result.npz"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    entries = [json.loads((f / "state.json").read_text())["steps"] for f in (folder, tmp_path / "whole")]
    assert [step["name"] for step in entries[0]] == [step["name"] for step in entries[1]]


def test_a_finished_run_is_read_from_its_folder(trained, problem, tmp_path, monkeypatch):
    arguments = {"recipe": "int8-only", "folder": tmp_path, "verbose": False}
    first = xnn_tf.compress(trained, *problem, **arguments)
    monkeypatch.setattr("converter.convert", None)
    again = xnn_tf.compress(trained, *problem, **arguments)
    assert (again.xnn, again.score, again.candidates) == (first.xnn, first.score, first.candidates)
