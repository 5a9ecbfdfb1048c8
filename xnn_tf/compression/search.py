"""Search over a recipe's settings with Optuna, by one process or by several that share a journal file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schema.errors import InputError, UnsupportedError
from xnn_tf.compression.goal import Goal
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.run import Candidate

_TEMPERATURES, _WEIGHTS = (1.0, 6.0), (0.3, 0.95)  # of the teacher
_LEARNING_RATES = (1e-4, 3e-2)


@dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        trials: finished ones that the study shall have in the end, whoever ran them.
        study: its name.
        journal: the file that all processes append to, on a disk that they share; None: `journal.log` in the folder.
        space: (trial, recipe) -> recipe, by `trial.suggest_…`; None: learning rate, teacher, and what stages suggest.
        startup: trials that run to their end before the median of others may stop one.
    """

    trials: int
    study: str = "xnn"
    journal: str | os.PathLike | None = None
    space: Callable[[Any, Recipe], Recipe] | None = None
    startup: int = 4


class _Hopeless(Exception):
    """A trial is worse than the median of those before it."""


Watch = Callable[[Goal, list[Candidate]], None]
"""Told after each level."""


def search(
    settings: Search, recipe: Recipe, folder: Path, seed: int, attempt: Callable[[Recipe, Path, Watch], Any]
) -> Any:
    """Runs trials until there are as many as asked for, and returns the best one's result.

    Each trial has a folder of its own, so that one that was killed goes on where it was. The best trial may have been
    run elsewhere, in a folder that is not here: then it is run again.

    Args:
        settings: of the search.
        recipe: that is varied.
        folder: of all trials.
        seed: of the choices; a trial's depend on it and on the trial's number.
        attempt: runs one recipe in a folder.
    """
    optuna = _optuna()
    if settings.trials < 1:
        raise InputError(f"search: trials={settings.trials!r}: give a whole number above 0")
    folder.mkdir(parents=True, exist_ok=True)
    journal = Path(settings.journal if settings.journal is not None else folder / "journal.log")
    backend = optuna.storages.journal.JournalFileBackend(str(journal))
    study = optuna.create_study(
        study_name=settings.study,
        storage=optuna.storages.JournalStorage(backend),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=settings.startup),
        load_if_exists=True,
    )
    space = settings.space or suggest
    states = optuna.trial.TrialState
    results: dict[int, Any] = {}
    while (
        sum(trial.state in (states.COMPLETE, states.PRUNED) for trial in study.get_trials(deepcopy=False))
        < settings.trials
    ):
        trial = study.ask()
        study.sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + trial.number) % 2**32)
        chosen = space(trial, recipe)

        def watch(goal: Goal, candidates: list[Candidate], trial: Any = trial) -> None:
            trial.report(_value(goal, candidates), sum(c.level is not None for c in candidates))
            if trial.should_prune():
                raise _Hopeless

        try:
            results[trial.number] = result = attempt(chosen, _place(folder, trial.number), watch)
        except _Hopeless:
            study.tell(trial, state=states.PRUNED)
            continue
        study.tell(trial, _result_value(result))
    best = study.best_trial
    if best.number not in results:
        chosen = space(optuna.trial.FixedTrial(best.params), recipe)
        results[best.number] = attempt(chosen, _place(folder, best.number), lambda goal, candidates: None)
    return results[best.number]


def suggest(trial: Any, recipe: Recipe) -> Recipe:
    """The usual space: one peak learning rate for all training, the teacher's temperature and weight, and what each
    stage suggests."""
    rate = trial.suggest_float("learning_rate", *_LEARNING_RATES, log=True)
    stages = []
    for stage in recipe.stages:
        stage = stage.suggest(trial)
        stages.append(replace(stage, learning_rate=rate) if hasattr(stage, "learning_rate") else stage)  # type: ignore[type-var]
    distill = recipe.distill
    if distill is not None:
        temperature = trial.suggest_float("temperature", *_TEMPERATURES)
        distill = temperature, trial.suggest_float("teacher_weight", *_WEIGHTS)
    return replace(recipe, stages=tuple(stages), distill=distill)


def _place(folder: Path, number: int) -> Path:
    return folder / f"trial-{number:05d}"


def _value(goal: Goal, candidates: list[Candidate]) -> float:
    """What a study minimizes: bytes, or the score that a size leaves, negative."""
    best = candidates[goal.best(candidates)]
    if goal.target_bytes is None:
        return float(best.bytes) if goal.met(best) else float(goal.base_bytes)
    return -best.score if goal.met(best) else best.bytes / goal.target_bytes


def _result_value(result: Any) -> float:
    """Of a finished trial; `Compressed` knows its goal by its report."""
    data = result.report.data
    goal = Goal(data["base"]["bytes"], data["base"]["score"], data["goal"]["max_drop"], data["goal"]["target_bytes"])
    return _value(goal, list(result.candidates))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UnsupportedError(
            "searching needs Optuna: pip install 'xnn[search]', or call compress without search="
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
