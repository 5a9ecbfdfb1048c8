"""One call: what it returns, with each form of data, and each goal."""

import gc
import tempfile

import numpy as np
import pytest

import runtime
import xnn_tf
from schema.errors import InputError, UnsupportedError
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune

RECIPE = Recipe("test", (Prune(levels=255),), (Conversion("int8-weights"),), (2.0, 0.5), first_ratio=8.0, levels=2)
FAST = {"recipe": RECIPE, "epochs": 3, "batch_size": 64, "verbose": False}


def accuracy(xnn, data):
    return np.mean(runtime.load(xnn).predict(data[0]).argmax(axis=1) == data[1])


def test_a_file_that_loses_no_more_than_allowed(trained, problem, tmp_path):
    train, validation = problem
    before = [np.copy(weight) for weight in trained.get_weights()]
    loss = trained.loss

    result = xnn_tf.compress(trained, train, validation, max_drop=0.04, folder=tmp_path / "state", **FAST)

    assert result.met
    assert result.score == accuracy(result.xnn, validation) >= result.base_score - 0.04
    assert result.base_bytes == 4 * trained.count_params()
    assert result.ratio == result.base_bytes / len(result.xnn) > 4
    assert result.path.read_bytes() == result.xnn
    assert result.save(tmp_path / "small.xnn").read_bytes() == result.xnn
    assert xnn_tf.sparsity(result.model).total.sparsity > 0.4
    _, score = result.model.evaluate(*validation, verbose=0)
    assert score == pytest.approx(result.score, abs=0.02)  # the file's weights are int8
    assert [candidate.conversion for candidate in result.candidates][:2] == ["float32", "int8-weights"]
    assert trained.loss is loss
    for now, then in zip(trained.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_size_is_kept(trained, problem):
    result = xnn_tf.compress(trained, *problem, target_size=3000, **FAST)
    assert result.met
    assert 2000 < len(result.xnn) <= 3000
    assert result.score > 0.5  # one in four by chance


def test_a_size_that_cannot_be_is_told(trained, problem, capsys):
    result = xnn_tf.compress(trained, *problem, target_ratio=1000, recipe="int8-only", batch_size=64)
    assert not result.met
    assert len(result.xnn) == min(candidate.bytes for candidate in result.candidates)
    assert "the goal was not met" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["dataset", "sequence", "one-hot"])
def test_forms_of_data_and_models_that_are_not_compiled(keras, classifier, trained, problem, form):
    import tensorflow as tf

    model = classifier(keras)  # not compiled
    model.set_weights(trained.get_weights())

    class Batches(keras.utils.PyDataset if hasattr(keras.utils, "PyDataset") else keras.utils.Sequence):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y = x, y

        def __len__(self):
            return len(self.x) // 64

        def __getitem__(self, index):
            part = slice(64 * index, 64 * index + 64)
            return self.x[part], self.y[part]

    forms = {
        "dataset": lambda x, y: tf.data.Dataset.from_tensor_slices((x, y)).batch(64),
        "sequence": Batches,
        "one-hot": lambda x, y: (x, np.eye(4, dtype=np.float32)[y]),
    }
    data = [forms[form](*part) for part in problem]
    result = xnn_tf.compress(model, *data, target_ratio=5, **FAST)
    assert result.met
    assert result.score == accuracy(result.xnn, problem[1]) > 0.8


def test_minutes_are_kept_to(trained, problem, tmp_path):
    """Far too few for all epochs: one is trained, and that is all."""
    arguments = FAST | {"epochs": 500, "budget_minutes": 0.01, "folder": tmp_path}
    result = xnn_tf.compress(trained, *problem, max_drop=0.5, **arguments)
    assert result.met
    assert {candidate.level for candidate in result.candidates} == {None, 0}


def test_excluded_layers_are_left(trained, problem):
    result = xnn_tf.compress(trained, *problem, target_ratio=6, exclude="out", **FAST)
    assert xnn_tf.sparsity(result.model)["out"].zeros == 0
    assert xnn_tf.sparsity(result.model)["first"].sparsity > 0.3


def test_another_measure(trained, problem):
    def worst_class(y, outputs):
        right = outputs.argmax(axis=1) == y
        return min(np.mean(right[y == label]) for label in range(4))

    result = xnn_tf.compress(trained, *problem, max_drop=0.0, metric=worst_class, recipe="int8-only", verbose=False)
    assert result.base_score == worst_class(problem[1][1], trained.predict(problem[1][0], verbose=0))


def test_what_cannot_be_is_refused(keras, trained, problem, tmp_path):
    with pytest.raises(InputError, match="train: x and y have"):
        xnn_tf.compress(trained, (problem[0][0], problem[0][1][:9]), problem[1], verbose=False)
    with pytest.raises(InputError, match="validation is a int"):
        xnn_tf.compress(trained, problem[0], 7, verbose=False)
    with pytest.raises(InputError, match="is not built"):
        xnn_tf.compress(keras.Sequential([keras.layers.Dense(2)]), *problem, verbose=False)
    arguments = {"recipe": "int8-only", "folder": tmp_path, "verbose": False}
    xnn_tf.compress(trained, *problem, **arguments)
    with pytest.raises(InputError, match="another compression"):
        xnn_tf.compress(trained, *problem, seed=1, **arguments)

    class Own(keras.Model):
        def __init__(self, size):
            super().__init__()
            self.dense = keras.layers.Dense(size)

        def call(self, x):
            return self.dense(x)

        def get_config(self):
            raise NotImplementedError

    model = Own(4)
    model(problem[0][0][:1])
    with pytest.raises(UnsupportedError, match="get_config"):
        xnn_tf.compress(model, *problem, verbose=False)


def test_a_folder_that_nobody_named_goes_with_the_result(trained, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arguments = {"recipe": "int8-only", "verbose": False}
    result = xnn_tf.compress(trained, *problem, **arguments)
    assert result.path.read_bytes() == result.xnn
    assert (result.path.parent / "report.html").exists()
    del result
    gc.collect()
    assert not list(tmp_path.iterdir())

    with pytest.raises(ValueError, match="no number"):
        xnn_tf.compress(trained, *problem, metric=no_number, **arguments)
    assert not list(tmp_path.iterdir())

    with monkeypatch.context() as patched:
        patched.setattr("xnn_tf.compression.run.Run.levels", interrupted)
        with pytest.raises(KeyboardInterrupt):
            xnn_tf.compress(trained, *problem, **arguments)
    (left,) = tmp_path.iterdir()  # from which the run can go on
    assert xnn_tf.compress(trained, *problem, folder=left, **arguments).met


def no_number(targets, outputs):
    raise ValueError("no number")


def interrupted(*arguments):
    raise KeyboardInterrupt
