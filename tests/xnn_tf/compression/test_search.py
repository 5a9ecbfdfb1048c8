"""A search over settings: in one process, in two that share a journal, and without Optuna."""

import subprocess
import sys
from dataclasses import replace

import pytest

import xnn_tf
from schema.errors import InputError, UnsupportedError
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.search import Search
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune

RECIPE = Recipe("test", (Prune(levels=255),), (Conversion("int8-weights"),), (2.0, 0.5), first_ratio=8.0, levels=1)
FAST = {"recipe": RECIPE, "epochs": 2, "batch_size": 64, "verbose": False, "max_drop": 0.05}


def ratios(trial, recipe):
    return replace(recipe, first_ratio=trial.suggest_float("ratio", 5.0, 12.0))


@pytest.fixture
def keras():
    return pytest.importorskip("tf_keras")


@pytest.mark.slow
def test_the_best_of_two_trials(trained, problem, tmp_path):
    optuna = pytest.importorskip("optuna")
    result = xnn_tf.compress(trained, *problem, search=2, folder=tmp_path, **FAST)

    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log")))
    study = optuna.load_study(study_name="xnn", storage=storage)
    assert len(study.trials) == 2
    assert {"learning_rate", "temperature", "teacher_weight", "prune_end"} <= set(study.best_params)
    assert len(result.xnn) == study.best_value == min(trial.value for trial in study.trials)
    assert study.trials[0].params != study.trials[1].params
    again = xnn_tf.compress(trained, *problem, search=2, folder=tmp_path, **FAST)  # nothing is left to do
    assert again.xnn == result.xnn
    assert len(study.get_trials()) == 2


PROCESS = """
import sys
import numpy as np
import tf_keras as keras
import xnn_tf
from xnn_tf.compression.search import Search
sys.path.insert(0, {here!r})
from test_search import FAST, ratios
rng = np.random.default_rng(0)
centres, labels = rng.normal(size=(4, 16)), rng.integers(0, 4, 384)
points = (centres[labels] + rng.normal(size=(384, 16))).astype("float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(4)])
model.set_weights([np.random.default_rng(1).normal(size=w.shape).astype("float32") / 8 for w in model.get_weights()])
data = (points[:256], labels[:256]), (points[256:], labels[256:])
result = xnn_tf.compress(model, *data, search=Search(3, journal=sys.argv[1], space=ratios), folder=sys.argv[2], **FAST)
print(len(result.xnn))
"""


@pytest.mark.slow
def test_two_processes_share_a_journal(repository, tmp_path):
    optuna = pytest.importorskip("optuna")
    journal = str(tmp_path / "journal.log")
    script = PROCESS.format(here=str(repository / "tests/xnn_tf/compression"))
    commands = [[sys.executable, "-c", script, journal, str(tmp_path / name)] for name in "ab"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=repository, **pipes) for command in commands]
    sizes = []
    for process in processes:
        out, errors = process.communicate(timeout=900)
        assert process.returncode == 0, errors[-3000:]
        sizes.append(int(out))
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(journal))
    trials = optuna.load_study(study_name="xnn", storage=storage).trials
    assert 3 <= len(trials) <= 4  # both may begin the last one
    folders = {path.name: path.parent.name for path in tmp_path.glob("?/trial-*")}
    assert set(folders.values()) == {"a", "b"}
    assert min(sizes) == min(trial.value for trial in trials if trial.value is not None)


def test_a_hopeless_trial_is_stopped(tmp_path):
    """By the median of those before it, at its first level."""
    pytest.importorskip("optuna")
    from types import SimpleNamespace

    from xnn_tf.compression.goal import Goal
    from xnn_tf.compression.run import Candidate
    from xnn_tf.compression.search import search

    goal, begun, finished = Goal(10_000, 0.9, 0.01, None), [], []
    data = {"base": {"bytes": 10_000, "score": 0.9}, "goal": {"max_drop": 0.01, "target_bytes": None}}

    def attempt(recipe, folder, watch):
        begun.append(folder.name)
        files = [Candidate("level-1/x", None, "x", 1000 if len(begun) < 4 else 5000, 0.9, 0)]
        watch(goal, files)
        finished.append(folder.name)
        return SimpleNamespace(report=SimpleNamespace(data=data), candidates=files)

    result = search(Search(4, startup=2, space=ratios), RECIPE, tmp_path, 0, attempt)
    assert begun == [f"trial-0000{n}" for n in range(4)]
    assert finished == begun[:3]
    assert result.candidates[0].bytes == 1000


def test_without_optuna(trained, problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UnsupportedError, match="search"):
        xnn_tf.compress(trained, *problem, search=2, **FAST)


def test_no_trials(trained, problem):
    pytest.importorskip("optuna")
    with pytest.raises(InputError, match="trials=0"):
        xnn_tf.compress(trained, *problem, search=0, **FAST)
