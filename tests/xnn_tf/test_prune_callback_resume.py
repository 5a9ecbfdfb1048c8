"""Training that is interrupted and goes on reaches the masks of training that was not."""

from contextlib import nullcontext

import numpy as np
import pytest

import xnn_tf


def prune():
    return xnn_tf.PruneCallback(0.8, begin=3, end=0.8, frequency=4)


def uninterrupted():
    """Sparsity after each of five epochs of eight steps: it changes in steps 3, 7, 11 … and 32."""
    seen = []
    for step in (8, 16, 24, 32, 40):
        share = 0.8 if step >= 32 else 0.8 * (1 - (1 - (step - 3) // 4 * 4 / 29) ** 3)
        seen.append((round(60 * share) + round(20 * share)) / 80)
    return seen


def test_initial_epoch(dense_model, data, zeros):
    model = dense_model()
    sparsity = []
    for initial, last in ((0, 2), (2, 5)):
        callback = xnn_tf.PruneCallback(0.8, begin=3, end=32, frequency=4)
        with pytest.warns(UserWarning, match="ends at step 32") if last == 2 else nullcontext():
            history = model.fit(
                *data, batch_size=8, initial_epoch=initial, epochs=last, verbose=0, callbacks=[callback]
            ).history
        sparsity += history["sparsity"]
    assert sparsity == uninterrupted()
    assert [zeros(layer) for layer in model.layers] == [48, 16]


@pytest.mark.parametrize("order", ["prune first", "backup first"])
def test_backup_and_restore(keras, dense_model, data, zeros, tmp_path, order):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if int(self.model.optimizer.iterations) == 19:  # within the third epoch
                raise KeyboardInterrupt

    class Record(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.epochs = [*getattr(self, "epochs", []), epoch]

    def callbacks():
        pair = [prune(), keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))]
        return pair if order == "prune first" else pair[::-1]

    with pytest.raises(KeyboardInterrupt):
        dense_model().fit(*data, batch_size=8, epochs=5, verbose=0, callbacks=[*callbacks(), Interrupt()])
    model, record = dense_model(), Record()  # a new process, as it were
    history = model.fit(*data, batch_size=8, epochs=5, verbose=0, callbacks=[*callbacks(), record]).history
    assert record.epochs == [2, 3, 4]
    assert history["sparsity"] == uninterrupted()[2:]
    assert [zeros(layer) for layer in model.layers] == [48, 16]


def test_an_interrupted_fit_is_taken_up_in_the_same_process(keras, dense_model, data, zeros):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    model, callback = dense_model(), xnn_tf.PruneCallback(0.8)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, batch_size=8, verbose=0, callbacks=[callback, Interrupt()])
    model.fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5)])  # another one takes over
    assert [zeros(layer) for layer in model.layers] == [30, 10]
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, batch_size=8, verbose=0, callbacks=[callback, Interrupt()])
    other = dense_model()
    other.fit(*data, batch_size=8, verbose=0, callbacks=[callback])  # the same one, for another model
    assert [zeros(layer) for layer in other.layers] == [48, 16]
    assert model.get_layer("hidden").kernel.constraint is None


@pytest.mark.parametrize("per_execution", [1, 3])
def test_a_data_set_of_unknown_length(keras, dense_model, data, zeros, per_execution):
    if per_execution > 1 and keras.__name__ == "tf_keras":
        pytest.skip("tf_keras needs to know the length of an epoch for steps_per_execution > 1")
    tf = pytest.importorskip("tensorflow")
    batches = tf.data.Dataset.from_tensor_slices(data).batch(8).filter(lambda x, y: True)
    model = dense_model(steps_per_execution=per_execution)
    history = model.fit(batches, epochs=4, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8, frequency=1)]).history
    assert [zeros(layer) for layer in model.layers] == [48, 16]
    assert history["sparsity"][-1] == 0.8
    assert 0 < history["sparsity"][0] < history["sparsity"][1] < 0.8
    np.testing.assert_array_equal(history["sparsity"][2:], 0.8)


def test_a_generator_for_a_single_epoch(dense_model, data, zeros):
    def batches():
        for start in range(0, 64, 8):
            yield data[0][start : start + 8], data[1][start : start + 8]

    model = dense_model()
    with pytest.warns(UserWarning, match="single epoch of unknown length"):
        model.fit(batches(), verbose=0, callbacks=[xnn_tf.PruneCallback(0.8)])
    assert [zeros(layer) for layer in model.layers] == [48, 16]
