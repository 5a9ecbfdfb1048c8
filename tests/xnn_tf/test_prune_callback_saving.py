"""What is saved during and after pruning is an ordinary model."""

import subprocess
import sys

import numpy as np
import pytest

import xnn_tf

RELOAD = """
import importlib, sys
import numpy as np
x = np.load(sys.argv[1])
for path in sys.argv[2:]:
    keras = importlib.import_module("tf_keras" if "tf_keras" in path else "keras")
    model = keras.models.load_model(path)
    np.save(path + ".npy", np.array(model(x)))
assert "xnn_tf" not in sys.modules
"""


@pytest.mark.slow
def test_saved_models_reload_without_xnn_tf(data, tmp_path):
    predictions = {}
    for keras in (pytest.importorskip("keras"), pytest.importorskip("tf_keras")):
        during, after, folder = (str(tmp_path / f"{keras.__name__}_{name}") for name in ("during", "after", "folder"))
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10), keras.layers.Dense(2)])
        model.compile("adamw", "mse")
        callbacks = [xnn_tf.PruneCallback(0.8, end=0.5), keras.callbacks.ModelCheckpoint(during + ".keras")]
        model.fit(*data, epochs=2, verbose=0, callbacks=callbacks)
        model.save(after + ".keras")
        paths = [during + ".keras", after + ".keras"]
        if keras.__name__ == "tf_keras":
            model.save(folder, save_format="tf")
            paths.append(folder)
        for path in paths:
            assert xnn_tf.sparsity(keras.models.load_model(path)).total.zeros == 64
            predictions[path] = np.array(model(data[0]))
    np.save(tmp_path / "x.npy", data[0])
    command = [sys.executable, "-c", RELOAD, str(tmp_path / "x.npy"), *predictions]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    for path, wanted in predictions.items():
        np.testing.assert_allclose(np.load(path + ".npy"), wanted, rtol=1e-5, atol=1e-6)


def test_exported_while_pruning(keras, dense_model, data, tmp_path):
    import tensorflow as tf

    class Export(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.export(str(tmp_path / "saved_model"))

    model = dense_model()
    model.fit(*data, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8, schedule="constant"), Export()])
    loaded = tf.saved_model.load(str(tmp_path / "saved_model"))
    kernels = [variable.numpy() for variable in loaded.variables if len(variable.shape) == 2]
    assert sorted(int(np.sum(kernel == 0)) for kernel in kernels) == [16, 48]


def test_h5_and_weights(keras, dense_model, data, tmp_path):
    model = dense_model()
    model.fit(*data, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8)])
    model.save(str(tmp_path / "model.h5"))
    assert xnn_tf.sparsity(keras.models.load_model(str(tmp_path / "model.h5"), compile=False)).total.zeros == 64
    config = model.get_config()
    assert "Mask" not in str(config)
    assert xnn_tf.sparsity(keras.Sequential.from_config(config)).total.zeros == 0
