"""What to change so that a quantized model loses less, found by trying it on the calibration data.

Layers with a large error of their own are candidates; those that only inherit errors are not. Each candidate is then
quantized alone, everything else being float: what that does to the model's outputs says which candidates matter. The
ones that do most are kept in float or int16, the worst one, two, four and eight of them, and the model is quantized
again each time; so it is with equalization and bias correction, which cost nothing when the model runs.
"""

from __future__ import annotations

import glob
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from converter import quantize as quantization
from converter.debug.probes import isolated
from converter.quantize import Options
from converter.quantize.calibration import Batch
from converter.quantize.measure import Reference
from converter.quantize.options import USERS
from converter.quantize.samples import first
from converter.rewriter import copy
from converter.tables import table
from schema.graph import Graph

CANDIDATES = 24  # layers that are tried alone
SAMPLES = 64  # that they are tried on
KEPT = (1, 2, 4, 8)
WORTHWHILE = 1.0  # dB that something has to gain to be recommended
ENOUGH = 0.8  # of the largest gain: what reaches it and comes first is recommended
GOOD = 40.0  # dB, an error of a hundredth of the signal: more is not asked for
SNR = "SNR dB of the outputs (before a softmax)"
SATURATED = 0.5  # dB: keeping twice as many layers is not tried where the last doubling gained less


@dataclass(frozen=True)
class Trial:
    """snr: in dB, of the outputs with these options of the converter. arguments: for its command line."""

    options: Options
    arguments: str
    snr: float


@dataclass(frozen=True)
class Advice:
    """baseline: SNR of the outputs in dB as things are. trials: in the order in which they cost little.

    alone: (layer, SNR of the outputs where only that layer is quantized), the worst first. All are of what goes into a
    softmax at the end rather than what comes out, and for several outputs of the mean of noise to signal.
    """

    baseline: float
    trials: Sequence[Trial]
    alone: Sequence[tuple[str, float]]

    @property
    def best(self) -> Trial | None:
        """The first trial that gains nearly as much as any, up to what is good; None where none is worth it."""
        gains = [min(trial.snr, GOOD) - self.baseline for trial in self.trials]
        if max(gains, default=0.0) < WORTHWHILE:
            return None
        return next(t for t, gain in zip(self.trials, gains, strict=True) if gain >= ENOUGH * max(gains))

    def __str__(self) -> str:
        rows = [("tried", SNR, "gain")]
        rows += [(t.arguments, f"{t.snr:.1f}", f"{t.snr - self.baseline:+.1f}") for t in self.trials]
        lines = [table(rows, right=(1, 2))]
        if self.alone:
            alone = [("quantized alone", SNR), *((n, f"{s:.1f}") for n, s in self.alone[:8])]
            lines.insert(0, table(alone, right=(1,)))
        return "\n\n".join([*lines, self.conclusion()])

    def conclusion(self) -> str:
        """What to do, in one sentence."""
        if self.best is None and self.baseline > GOOD - WORTHWHILE:
            return f"advice: leave the model as it is, {self.baseline:.1f} dB are good"
        if self.best is None:
            return f"advice: nothing tried gains {WORTHWHILE:g} dB; leave the model as it is"
        return f"advice: {self.best.arguments}  ({self.baseline:.1f} dB become {self.best.snr:.1f})"

    def to_json(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "trials": [{**asdict(t.options), "arguments": t.arguments, "snr": t.snr} for t in self.trials],
            "alone": [{"layer": layer, "snr": snr} for layer, snr in self.alone],
            "best": None if self.best is None else self.best.arguments,
        }


class Adviser:
    """real: the float graph. quantized: what `options` made of it. layers: candidates, the worst own error first."""

    def __init__(
        self,
        real: Graph,
        quantized: Graph,
        options: Options,
        batches: Sequence[Batch],
        progress: Callable[[str], None],
    ):
        self._real = real
        self._quantized = quantized
        self._options = options
        self._batches = batches
        self._progress = progress
        self._reference = Reference(real, batches, scores=True)
        self._baseline = self._reference.noise(quantized).snr

    def advise(self, layers: Sequence[str]) -> Advice:
        alone = self._alone(layers)
        trials = []
        worst = [layer for layer, snr in alone if snr < math.inf]
        for name in ("int16", "keep_float"):
            trials += self._growing(name, worst)
        trials.sort(key=lambda trial: len(trial.options.keep_float) + len(trial.options.int16))
        trials.insert(0, self._try(replace(self._options, equalize=True, bias_correction=True)))
        if self._options.method == "int8":
            trials.append(self._try(replace(self._options, method="int16x8", int16=())))
        return Advice(self._baseline, trials, alone)

    def _alone(self, layers: Sequence[str]) -> list[tuple[str, float]]:
        few = first(self._batches, SAMPLES)
        reference, found = Reference(self._real, few, scores=True), []
        for layer in layers[:CANDIDATES]:
            self._progress(f"only '{layer}' quantized")
            found.append((layer, reference.noise(isolated(self._real, self._quantized, layer)).snr))
        return sorted(found, key=lambda pair: pair[1])

    def _growing(self, name: str, worst: Sequence[str]) -> list[Trial]:
        """Trials with ever more layers in another type, up to half of them, as long as that helps."""
        trials: list[Trial] = []
        if self._options.method not in USERS[name]:
            return []
        given = getattr(self._options, name)
        for k in KEPT:
            if k > max(1, len(worst) // 2):
                break
            patterns = (*given, *map(_pattern, worst[:k]))
            changed: dict[str, Any] = {name: patterns}
            trials.append(self._try(replace(self._options, **changed)))
            if len(trials) > 1 and trials[-1].snr - trials[-2].snr < SATURATED:
                break
        return trials

    def _try(self, options: Options) -> Trial:
        arguments = arguments_of(options)
        self._progress(f"trying {arguments}")
        graph = copy(self._real)
        quantization.quantize(graph, options, self._batches)
        return Trial(options, arguments, self._reference.noise(graph).snr)


def _pattern(layer: str) -> str:
    """What names one layer on the command line, where commas separate patterns."""
    return glob.escape(layer).replace(",", "?")


def arguments_of(options: Options) -> str:
    """The converter's command line arguments for these options."""
    parts = [f"--quantize {options.method}"]
    parts += [
        f"--{name.replace('_', '-')} {shlex.quote(','.join(patterns))}"
        for name in ("keep_float", "int16")
        if (patterns := getattr(options, name))
    ]
    parts += [f"--{name.replace('_', '-')}" for name in ("equalize", "bias_correction") if getattr(options, name)]
    return " ".join(parts)
