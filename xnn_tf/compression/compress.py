"""Compression by one call."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from schema.command_line import replacing
from schema.errors import InputError
from xnn_tf.compression.context import Context
from xnn_tf.compression.data import Data
from xnn_tf.compression.goal import Goal, check_goal
from xnn_tf.compression.progress import Progress
from xnn_tf.compression.recipe import Recipe, find_recipe
from xnn_tf.compression.report.report import Report, make_report
from xnn_tf.compression.run import Candidate, Run
from xnn_tf.compression.scoring import Metric
from xnn_tf.compression.search import Search, Watch
from xnn_tf.compression.search import search as run_search
from xnn_tf.compression.state import STATE_FILE, State, fingerprint
from xnn_tf.compression.task import Task
from xnn_tf.keras_compat import is_built, require_tensorflow_keras
from xnn_tf.layer_patterns import Patterns

BASE_BYTES = 4  # of a parameter of the base model
DEFAULT_DROP = 0.005


@dataclass(frozen=True)
class Compressed:
    """What `compress` returns.

    Attributes:
        model: the compressed Keras model, compiled; the zeros and shared values are in its weights. Where the file is
            int8, the model is its float counterpart.
        xnn: the file.
        path: where the file lies: in the folder that was given, or a temporary one that goes with this object.
        met: whether it meets the goal.
        score: of the file on the validation data.
        base_score: of the base model's file.
        base_bytes: of the base model's parameters as float32.
        candidates: all files that were made, in their order.
        report: what was done; `report.html` and `report.json` lie beside the file.
    """

    model: Any
    xnn: bytes = field(repr=False)
    path: Path
    met: bool
    score: float
    base_score: float
    base_bytes: int
    candidates: tuple[Candidate, ...] = field(repr=False)
    report: Report = field(repr=False)

    @property
    def ratio(self) -> float:
        """How many times smaller the file is than the base model's parameters as float32."""
        return self.base_bytes / len(self.xnn)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the file."""
        with replacing(path) as file:
            file.write(self.xnn)
        return Path(path)


def compress(
    model: Any,
    train: Any,
    validation: Any,
    *,
    max_drop: float | None = None,
    target_size: int | None = None,
    target_ratio: float | None = None,
    recipe: str | Recipe = "xqueeze",
    epochs: int | None = None,
    budget_minutes: float | None = None,
    batch_size: int = 128,
    metric: Metric | None = None,
    exclude: Patterns = (),
    distributed: Any = None,
    search: Search | int | None = None,
    folder: str | os.PathLike | None = None,
    seed: int = 0,
    verbose: bool = True,
) -> Compressed:
    """Compresses a trained model, fine-tuning it, and returns the smallest file that is good enough.

        result = xnn_tf.compress(model, (x_train, y_train), (x_valid, y_valid), max_drop=0.005)
        result.save("model.xnn")

    All choices are made by the validation data, on which the `.xnn` files themselves are run; keep the test data for
    yourself. The given model stays as it is.

    Args:
        model: of Keras 3 (on TensorFlow) or tf_keras, trained and built. Its loss and the class of its optimizer are
            used, or where it is not compiled, what fits its outputs and targets, and Adam.
        train: (x, y) arrays, a `tf.data.Dataset` of batches, or a keras PyDataset or Sequence. Augmentation is welcome.
        validation: likewise; always the same samples.
        max_drop: how much lower the score may be than the base model's; 0.005 where no goal is given.
        target_size: instead, how many bytes the file may have; the best score counts.
        target_ratio: instead, how many times smaller than the float32 parameters the file shall be.
        recipe: "xqueeze", "deep-compression", "int8-only", or an `xnn_tf.Recipe`.
        epochs: of training in each level (see docs/compressing.md); None takes the recipe's.
        budget_minutes: about how long it may take; fewer epochs and levels where that is not enough for all.
        batch_size: for arrays.
        metric: (targets, outputs) -> score, the higher the better; None takes accuracy, for regression R².
        exclude: layer-name patterns of what is not pruned or clustered.
        distributed: a `tf.distribute` strategy to train under; with several workers, each of them makes the same call.
        search: how many variants of the recipe to try (a number, or an `xnn_tf.Search`); needs Optuna.
        folder: where the state is kept after each step. Called again with the same arguments after a kill, `compress`
            goes on from there. None takes a temporary folder, which is removed with the result; a run that is cut
            short leaves it, and says its name where it is `verbose`.
        seed: of all random choices. The global seeds of Python, numpy and TensorFlow are set from it.
        verbose: print what is being done.

    Raises:
        InputError: an argument is of no use, or the folder holds another run.
        UnsupportedError: the model cannot be copied or converted; the message names the layer.
    """
    check_goal(max_drop, target_size, target_ratio)
    require_tensorflow_keras(model)
    if not is_built(model):
        raise InputError(f"{model.name} is not built: call it on a batch of data, or train it, first")
    chosen = find_recipe(recipe)
    arguments = _Arguments(
        model,
        Data(train, "train", batch_size),
        Data(validation, "validation", batch_size),
        (max_drop, target_size, target_ratio),
        chosen.epochs if epochs is None else epochs,
        budget_minutes,
        metric,
        exclude,
        distributed,
        seed,
        verbose,
    )
    attempt: Callable[[Path], Compressed] = partial(_compress, arguments, chosen)
    if search is not None:
        trials = Search(search) if isinstance(search, int) else search
        if budget_minutes is not None:
            arguments = replace(arguments, budget_minutes=budget_minutes / trials.trials)
        attempt = partial(_searched, trials, arguments, chosen)
    return attempt(Path(folder)) if folder is not None else _in_temporary_folder(attempt)


def _in_temporary_folder(attempt: Callable[[Path], Compressed]) -> Compressed:
    """The folder is there as long as the result, or, where the run was cut short, what can be gone on from."""
    place = Path(tempfile.mkdtemp(prefix="xnn-compress-"))
    try:
        result = attempt(place)
    except BaseException:
        if not any(place.rglob(STATE_FILE)):
            shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, place, ignore_errors=True)
    return result


@dataclass(frozen=True)
class _Arguments:
    """Of `compress`, checked: what is the same for all variants of a recipe."""

    model: Any
    train: Data
    validation: Data
    goal: tuple[float | None, int | None, float | None]
    epochs: int
    budget_minutes: float | None
    metric: Metric | None
    exclude: Patterns
    distributed: Any
    seed: int
    verbose: bool


def _searched(trials: Search, arguments: _Arguments, recipe: Recipe, folder: Path) -> Compressed:
    return run_search(trials, recipe, folder, arguments.seed, partial(_compress, arguments))


def _compress(arguments: _Arguments, recipe: Recipe, folder: Path, watch: Watch | None = None) -> Compressed:
    """One recipe, in a folder of its own."""
    model, seed = arguments.model, arguments.seed
    max_drop, target_size, target_ratio = arguments.goal
    task = Task(model, arguments.train, arguments.metric)
    base_bytes = BASE_BYTES * int(sum(np.prod(weight.shape) for weight in model.weights))
    if target_ratio is not None:
        target_size = int(base_bytes / target_ratio)
    drop = None if target_size is not None else DEFAULT_DROP if max_drop is None else float(max_drop)
    settings: list[Any] = [repr(recipe), drop, target_size, arguments.epochs, arguments.budget_minutes]
    settings += [arguments.train.batch_size, list(arguments.exclude), seed, task.metric_name]
    architecture = [type(model).__name__, *(layer.name for layer in model._flatten_layers())]
    contents = [architecture, *model.get_weights(), *_leaves(arguments.validation.first())]
    worker = _worker(arguments.distributed)
    if worker:
        folder = folder / f"worker-{worker}"
    state = State(folder, fingerprint([*settings, *contents]))
    context = Context(
        model,
        None,
        task,
        arguments.train,
        arguments.validation,
        Progress(arguments.verbose and not worker),
        exclude=arguments.exclude,
        distill=recipe.distill,
        strategy=arguments.distributed,
    )
    budget_seconds = None if arguments.budget_minutes is None else 60 * arguments.budget_minutes
    run = Run(context, recipe, state, arguments.epochs, budget_seconds, seed)
    if watch is not None:
        run.watch = watch
    base = run.base().values
    goal = Goal(base_bytes, base["score"], drop, target_size)
    context.progress.say(
        f"{model.name}: {base_bytes:,} bytes of parameters, {task.metric_name} {base['score']:.4f}; "
        f"recipe {recipe.name}, "
        + (f"at most {target_size:,} bytes" if drop is None else f"at most {drop:g} less")
        + f"; state in {folder}"
    )
    run.levels(goal)
    return _result(run, goal, folder)


def _result(run: Run, goal: Goal, folder: Path) -> Compressed:
    best = run.candidates[goal.best(run.candidates)]
    step = run.state.find(best.step)
    assert step is not None
    model, xnn = run.model(best.model_step), run.state.xnn(step)
    run.context.task.compile(model, run.context.task.peak, 1)
    report = make_report(run, goal, best, model, xnn)
    page = report.save(folder)
    result = Compressed(
        model,
        xnn,
        folder / step.files["xnn"],
        goal.met(best),
        best.score,
        goal.base_score,
        goal.base_bytes,
        tuple(run.candidates),
        report,
    )
    run.context.progress.say(f"{report}" + ("" if result.met else ": the goal was not met") + f"; {page}")
    return result


def _worker(strategy: Any) -> int:
    """The number of this worker among several of a strategy; the first one prints, and its folder is the run's."""
    resolver = None if strategy is None else strategy.cluster_resolver
    return int(resolver.task_id or 0) if resolver is not None else 0


def _leaves(structure: Any) -> list[np.ndarray]:
    if isinstance(structure, dict):
        structure = tuple(structure.values())
    if isinstance(structure, tuple):
        return [leaf for part in structure for leaf in _leaves(part)]
    return [structure]
