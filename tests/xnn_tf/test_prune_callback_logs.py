"""The sparsity is in the logs of every callback, and the callback is one that both Kerases take."""

import csv

import numpy as np
import pytest

import xnn_tf


@pytest.mark.parametrize("first", [True, False], ids=["prune first", "prune last"])
def test_history_csv_logger_and_early_stopping(keras, dense_model, data, tmp_path, first):
    loggers = [
        keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        keras.callbacks.EarlyStopping(monitor="sparsity", mode="max", baseline=0.79, patience=9),
    ]
    prune = xnn_tf.PruneCallback(0.8, end=1.0, frequency=1)
    callbacks = [prune, *loggers] if first else [*loggers, prune]
    model = dense_model(metrics=["mae"])
    history = model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=callbacks).history
    sparsity = history["sparsity"]
    assert sparsity[0] < sparsity[1] < sparsity[2] == 0.8
    assert set(history) == {"loss", "mae", "sparsity"}
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["sparsity"]) for row in rows] == sparsity


@pytest.mark.parametrize("first", [True, False], ids=["prune first", "prune last"])
def test_tensorboard(keras, dense_model, data, tmp_path, first):
    pytest.importorskip("tensorboard", reason="TensorFlow writes summaries only where tensorboard is installed")
    import tensorflow as tf

    callbacks = [xnn_tf.PruneCallback(0.8, frequency=1), keras.callbacks.TensorBoard(str(tmp_path), write_graph=False)]
    model = dense_model()
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=callbacks if first else callbacks[::-1])
    values = [
        float(tf.make_ndarray(value.tensor))
        for path in (tmp_path / "train").glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "epoch_sparsity"
    ]
    np.testing.assert_allclose(values, model.history.history["sparsity"], rtol=1e-6)


def test_metrics_are_what_they_are_without_it(keras, dense_model, data):
    histories = []
    for callbacks in ([], [xnn_tf.PruneCallback(None)]):
        keras.utils.set_random_seed(3)
        model = dense_model("sgd", metrics=["mae"])
        histories.append(
            model.fit(*data, batch_size=24, epochs=2, verbose=0, shuffle=False, callbacks=callbacks).history
        )
    assert histories[1].pop("sparsity") == [0.0, 0.0]
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-5)


def test_validation_sees_the_zeros_that_the_epoch_ends_with(keras, dense_model, data):
    class Seen(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            self.zeros = xnn_tf.sparsity(self.model).total.zeros

    seen = Seen()
    callbacks = [seen, xnn_tf.PruneCallback(0.8, end=1.0)]
    dense_model().fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=callbacks, validation_data=data)
    assert seen.zeros == 64


def test_it_works_in_callback_lists_of_evaluate_and_predict(dense_model, data):
    model, callback = dense_model(), xnn_tf.PruneCallback(0.5)
    model.evaluate(*data, verbose=0, callbacks=[callback])
    model.predict(data[0], verbose=0, callbacks=[callback])
    assert xnn_tf.sparsity(model).total.zeros == 0


def test_batch_hooks_that_it_does_not_use_cost_nothing(keras):
    callback = xnn_tf.PruneCallback()
    assert callback._implements_train_batch_hooks()
    assert not callback._implements_test_batch_hooks()
    assert not callback._implements_predict_batch_hooks()
    for hook in ("on_batch_end", "on_train_batch_end", "on_test_batch_end", "on_predict_batch_end"):
        assert getattr(callback, hook)._is_default
    hooks = [name for name in dir(keras.callbacks.Callback) if name.startswith("on_")]
    assert all(callable(getattr(callback, name)) for name in hooks)
