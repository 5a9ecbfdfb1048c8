"""What importing xnn_tf costs, and what it says where Keras does not run on TensorFlow."""

import os
import subprocess
import sys

import pytest

import xnn_tf
from schema import UnsupportedError


def run(repository, code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=repository,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_importing_it_imports_no_framework(repository):
    code = "import xnn_tf, sys; print([m for m in ('tensorflow', 'keras', 'tf_keras', 'numba') if m in sys.modules])"
    assert run(repository, code).stdout.strip() == "[]"


def test_other_backends_get_a_clear_error(monkeypatch):
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(2)])
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    for use in (xnn_tf.PruneCallback().set_model, xnn_tf.PruneCallback().start, xnn_tf.sparsity):
        with pytest.raises(UnsupportedError, match=r"jax backend.*KERAS_BACKEND=tensorflow"):
            use(model)


def test_keras_2_gets_a_clear_error(monkeypatch):
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(2)])
    monkeypatch.setattr(keras, "__version__", "2.15.0")
    with pytest.raises(UnsupportedError, match=r"2\.15\.0"):
        xnn_tf.sparsity(model)
