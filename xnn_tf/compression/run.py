"""The run of a recipe: steps that are remembered, levels that are searched, files that are kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from xnn_tf.compression import budget
from xnn_tf.compression.context import Context
from xnn_tf.compression.goal import Goal
from xnn_tf.compression.levels import Level, next_level
from xnn_tf.compression.models import config_of
from xnn_tf.compression.progress import Stopwatch
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.base import Stage
from xnn_tf.compression.state import State, Step

BASE = "base"
PROBE = "probe"
_NONE = ""  # no step's weights
_PROBE_STEPS = 12  # batches by which the time of an epoch is estimated


@dataclass(frozen=True)
class Candidate:
    """A file that was made.

    Attributes:
        step: that made it.
        model_step: whose weights it has; None for the base model's.
        conversion: how it was converted.
        bytes: of the file.
        score: on the validation data.
        level: that it belongs to; None for the base model's.
    """

    step: str
    model_step: str | None
    conversion: str
    bytes: int
    score: float
    level: int | None


class Run:
    """Runs a recipe, or what is left of it.

    Attributes:
        candidates: files made so far, those of an earlier part of the run among them.
        watch: called after each level.
    """

    def __init__(
        self, context: Context, recipe: Recipe, state: State, epochs: int, budget_seconds: float | None, seed: int
    ) -> None:
        self.context = context
        self.recipe = recipe
        self.state = state
        self.candidates: list[Candidate] = []
        self.watch: Callable[[Goal, list[Candidate]], None] = lambda goal, candidates: None
        self._epochs = epochs
        self._budget = budget_seconds
        self._seed = seed
        self._at: str | None = None  # the step whose weights the next one starts from
        self._loaded: str | None = _NONE

    def base(self) -> Step:
        """Converts and measures the base model as it is: the first candidate, and what all others are compared with."""

        def convert() -> tuple[dict[str, Any], bytes]:
            xnn = self.context.convert().bytes
            return {"conversion": "float32", "bytes": len(xnn), "score": self.context.score(xnn)}, xnn

        first = self.recipe.conversions[0]
        if first.quantize == "none":
            self.context.options = first.options
        return self._file(BASE, convert, None)

    def levels(self, goal: Goal) -> None:
        """Runs the stages that are there once, and then levels until the goal is reached as well as it can be."""
        for conversion in self.recipe.conversions:
            if conversion.name != "float32":
                self._file(f"{BASE}/{conversion.name}", partial(conversion.run, self.context), None)
        if not self.recipe.stages:
            return
        for stage in self.recipe.stages:
            if stage.once:
                self._train(f"once/{stage.name}", stage, 0)
        start = self._at
        per_level = [stage for stage in self.recipe.stages if not stage.once]
        done: list[Level] = []
        ends: list[str | None] = []
        while (aim := next_level(goal, self.recipe, done)) is not None:
            target, origin = aim
            epochs = self._epochs_of(len(done))
            if epochs == 0:
                break
            self._at = start if origin is None else ends[origin]
            made = self._level(len(done), target, epochs, per_level)
            best = made[goal.best(made)]
            done.append(Level(target, best.bytes, goal.met(best)))
            ends.append(self._at)
            what = "meets" if goal.met(best) else "misses"
            self.context.progress.say(f"  {best.bytes:,} bytes, {best.score:.4f}: {what} the goal")
            self.watch(goal, self.candidates)

    def _level(self, number: int, target: float, epochs: int, stages: list[Stage]) -> list[Candidate]:
        self.context.target_bytes = target
        self.context.keepers = []
        self.context.progress.say(f"level {number + 1}: {target:,.0f} bytes, {epochs} epochs")
        for stage, share in zip(stages, budget.share_out(epochs, stages), strict=True):
            self._train(f"level-{number + 1}/{stage.name}", stage, share)
            self.context.keepers.append(stage.keep)
        before = len(self.candidates)
        for conversion in self.recipe.conversions:
            name = f"level-{number + 1}/{conversion.name}"
            self._file(name, partial(conversion.run, self.context), number)
        return self.candidates[before:]

    def _epochs_of(self, level: int) -> int:
        if self._budget is None:
            return self._epochs
        seconds = budget.seconds_per_epoch(self.state.steps)
        if seconds is None:
            seconds = self._step(PROBE, self._probe).values["seconds"]
        left = self.recipe.levels - level
        epochs = budget.epochs_of_level(self._epochs, left, self.state.steps, seconds, self._budget)
        return max(1, epochs) if level == 0 else epochs

    def _probe(self) -> dict[str, Any]:
        """Estimates the time of an epoch, by a few batches."""
        context = self.context
        steps = context.train.steps or _PROBE_STEPS
        tried = min(_PROBE_STEPS, steps)
        with context.scope():
            context.task.compile(context.model, context.task.peak, steps)
        arguments = context.train.fit_arguments() | {"steps_per_epoch": tried, "verbose": 0}
        context.model.fit(**arguments)  # traces
        watch = Stopwatch()
        context.model.fit(**arguments)
        teacher = 1.4 if context.distill is not None else 1.0  # a forward run is some 0.4 of a step
        return {"epochs": 1, "seconds": watch.seconds * teacher * steps / tried, "probe": True}

    def _train(self, name: str, stage: Stage, epochs: int) -> None:
        self.context.epochs = epochs
        self.context.progress.begin(stage.name)
        known = self.state.find(name) is not None
        step = self._step(name, partial(self._staged, stage), trains=stage.share > 0)
        self.context.found[stage.name] = step.values
        if stage.share > 0:
            self._at = name
        if not known:
            self._told(stage.name, step)

    def _staged(self, stage: Stage) -> dict[str, Any]:
        """What a stage found; of one that trains, the score of the model that it leaves as well."""
        found = stage.run(self.context)
        if stage.share > 0:
            xnn = self.context.convert().bytes
            found |= {"score": self.context.score(xnn), "target_bytes": self.context.target_bytes}
        return found

    def _told(self, title: str, step: Step) -> None:
        logs = step.values.get("logs", {})
        more = "".join(f", {key} {logs[key]:.4f}" for key in ("loss", "sparsity") if key in logs)
        more += (
            f", {self.context.task.metric_name} of the model {step.values['score']:.4f}"
            if "score" in step.values
            else ""
        )
        epochs = f": {step.values['epochs']} epochs" if step.values.get("epochs") else ""
        self.context.progress.say(f"  {title}{epochs}{more} ({step.seconds:.0f} s)")

    def _file(self, name: str, make: Callable[[], tuple[dict[str, Any], bytes]], level: int | None) -> Step:
        """A step that makes a file, which becomes a candidate."""
        made: list[bytes] = []

        def run() -> dict[str, Any]:
            values, xnn = make()
            made.append(xnn)
            return values

        step = self._step(name, run, made=made)
        values = step.values
        self.candidates.append(Candidate(name, self._at, values["conversion"], values["bytes"], values["score"], level))
        return step

    def _step(
        self, name: str, run: Callable[[], dict[str, Any]], trains: bool = False, made: list[bytes] | None = None
    ) -> Step:
        """What a step found, as remembered, or else by running it on a fresh copy of the model that is to be changed.

        So a run that goes on after a kill does what it would have done without.
        """
        step = self.state.find(name)
        if step is not None:
            return step
        watch = Stopwatch()
        self.context.task.keras.utils.set_random_seed((self._seed + zlib.crc32(name.encode())) % 2**31)
        changes = trains or name == PROBE
        if changes or self._loaded != self._at:
            self.context.model = self.model(self._at, trained=changes)
            self._loaded = self._at
        values = run()
        weights = self.context.model.get_weights() if trains else None
        config = config_of(self.context.model, self.context.base) if trains else None
        if changes:  # a model under a strategy cannot be converted
            self._loaded = name if trains and self.context.strategy is None else _NONE
        if "seconds" in values:
            values["seconds"] = self.context.agreed(values["seconds"])
        seconds = self.context.agreed(watch.seconds)
        return self.state.add(name, seconds, values, weights, config, made[0] if made else None)

    def model(self, step: str | None, trained: bool = False) -> Any:
        """A fresh model with the weights that a step left; of the base for None.

        Args:
            step: its name.
            trained: whether it will be.
        """
        if step is None:
            return self.context.copy(self.context.base.get_weights(), None, trained)
        found = self.state.find(step)
        assert found is not None
        return self.context.copy(*self.state.weights(found), trained)
