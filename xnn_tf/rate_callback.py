"""Coded bytes as the goal of training: pruning and quantization in one `model.fit`."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.kernel_callback import KernelCallback
from xnn_tf.kernels import Kernel, as_they_were
from xnn_tf.lamp_ranking import LampRanking
from xnn_tf.layer_patterns import Patterns, first_match
from xnn_tf.pruning_schedule import Point, RampSchedule, pruning_schedule
from xnn_tf.rated_kernel import RatedKernel

MOST_LEVELS = 127
_BITS = 32  # of a weight before
_HALVINGS = 24  # of the search for a share of zeros
_WEIGHED = (0.9, 0.97, 1.0, 1.3, 1.6, 1.9)  # when files are made: 1 is the end of pruning, 2 that of the training


class RateCallback(KernelCallback):
    """Makes the kernels of a model take a given number of bytes in its file, while it trains.

        model.fit(x, y, epochs=20, callbacks=[xnn_tf.RateCallback(target_ratio=40), xnn_tf.DistillCallback(teacher)])

    Two things happen. From `begin` to `end`, more and more weights become zero, those of all layers ranked together
    (`xnn_tf.lamp_ranking`), so that each layer is as sparse as it can bear. From `quantize_begin` to `quantize_end`,
    the others are pulled to the nearest of `levels` multiples of a step on either side of zero, ever closer, until they
    are equal to it; the step of each kernel is fitted to its weights. How many zeros there must be follows from the
    bytes: entropy-coded positions and values, estimated by their entropy. What trains after `quantize_end` moves
    weights between levels (a straight-through estimator, `xnn_tf.projected_weight`), and adds zeros where the levels
    that they take cost more bytes than before. Zeros do not come back.

    The bytes are those of the kernels. A file has more (biases, the graph, names) and less (neurons that have become
    zero are left out): `size_of` counts what it is told to, some six times in a training. For whole files:

        size_of=lambda model: len(converter.convert(model).bytes)

    The model is not wrapped, and saves, reloads and exports as before. The estimated bytes are in the logs as
    `coded_bytes`. Zeros that a kernel has at the start stay. It is a callback as `PruneCallback` is, also in what it
    does with patterns, custom training loops (`start`, `step`, `finish`), interrupted and resumed training.
    """

    LOG_NAME = "coded_bytes"
    DOES = "compressed"

    def __init__(
        self,
        target_size: float | None = None,
        *,
        target_ratio: float | None = None,
        levels: int = 2,
        begin: Point = 0.0,
        end: Point = 0.5,
        quantize_begin: Point = 0.5,
        quantize_end: Point = 0.8,
        frequency: int | None = None,
        include: Patterns | None = None,
        exclude: Patterns | None = None,
        per_layer: Mapping[str, int] | None = None,
        size_of: Callable[[Any], float] | None = None,
    ) -> None:
        """Sets how small, and when.

        Args:
            target_size: bytes of all kernels together that this callback takes, or what `size_of` is to be.
            target_ratio: instead, how many times smaller than as float32.
            levels: on each side of zero: 1 gives weights of -1, 0 and 1 steps, 2 five values, up to 127 (8 bits).
            begin: when pruning begins: a whole number is a step (batch), a fraction the share of the planned training.
            end: when there are as many zeros as the size asks for.
            quantize_begin: when weights begin to be pulled to levels.
            quantize_end: when they are there.
            frequency: steps between changes; None chooses 100, or less for a short ramp.
            include: layer-name patterns of what to take; see `xnn_tf.layer_patterns`. None means every trainable Conv
                and Dense kernel.
            exclude: layer-name patterns of what not to take.
            per_layer: levels for single layers, by layer-name pattern; 0 leaves a kernel alone.
            size_of: bytes of the model that it is given, whose weights are on their levels meanwhile; None estimates
                those of the kernels. It goes with `target_size`.

        Raises:
            InputError: an argument is of no use; the message names it.
        """
        if (target_size is None) == (target_ratio is None):
            raise InputError("give either target_size or target_ratio")
        for name, value, least in (("target_size", target_size, 0), ("target_ratio", target_ratio, 1)):
            if value is not None and not (isinstance(value, numbers.Real) and float(value) > least):
                raise InputError(f"{name}={value!r}: give a number above {least}")
        if size_of is not None and target_size is None:
            raise InputError("size_of counts bytes: give target_size, not target_ratio")
        self._size, self._ratio, self._size_of = target_size, target_ratio, size_of
        self._levels = _levels(levels, "levels", least=1)
        ramp = pruning_schedule("cubic", begin, end, frequency, 0.5)
        pruning_schedule("cubic", quantize_begin, quantize_end, frequency, 0.5)  # checks the points
        self._pulling = RampSchedule(quantize_begin, quantize_end, frequency, power=1)
        settled = 2 * quantize_end if isinstance(quantize_end, int) else 1.0
        self._settling = RampSchedule(quantize_end, settled, frequency, power=1)
        if not isinstance(per_layer or {}, Mapping):
            raise InputError(f"per_layer={per_layer!r}: give a dict of layer-name patterns and their levels")
        counts = {pattern: _levels(n, f"per_layer[{pattern!r}]", least=0) for pattern, n in (per_layer or {}).items()}
        super().__init__(ramp, include, exclude, counts)

    @property
    def target_bytes(self) -> float:
        """What the kernels that it takes shall have; with `size_of`, what that shall be."""
        if self._size is not None:
            return float(self._size)
        assert self._ratio is not None
        return sum(held.mask.size for held in self._held) * _BITS / 8 / self._ratio

    @property
    def coded_bytes(self) -> float:
        """What there are at present, estimated."""
        return self._besides + sum(held.bytes_at(held.mask.zeros) for held in self._held)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._catch_up()
        for held in self._held:
            held.settle()
        super().on_train_end(logs)

    def _reset(self) -> None:
        super()._reset()
        self._moment: tuple[float | None, ...] | None = None
        self._besides = 0.0  # bytes that `size_of` counts beyond the estimate of the kernels
        self._next_weighed = _WEIGHED[0]

    def _attach_to(self, kernel: Kernel) -> Any:  # RatedKernel: they move together, not each by itself
        levels = first_match(kernel, self._per_layer, self._levels)
        return RatedKernel(kernel, self.model, levels) if levels else None

    def _hold(self) -> None:
        for held in self._held:
            held.projection.apply()

    def _move(self) -> bool:
        ramps = (self._schedule, self._pulling, self._settling)
        prune, pull, settle = (ramp.position(self._clock) for ramp in ramps)
        if not self._held or (prune, pull, settle) == self._moment:
            return False
        self._moment = prune, pull, settle
        shadows = [held.mask.values() for held in self._held]
        for held, shadow in zip(self._held, shadows, strict=True):
            held.measure(shadow)
        progress = (prune or 0.0) + (settle or 0.0)
        if self._size_of is not None and progress >= self._next_weighed:
            self._next_weighed = next((moment for moment in _WEIGHED if moment > progress), math.inf)
            self._weigh(shadows)
        changed = prune is not None and prune > 0 and self._prune(shadows, prune)
        if pull and not settle:  # then steps stay as they are
            for held in self._held:
                held.pull(held.mask.values(), pull)
            self._hold()
            return True
        return changed

    def _weigh(self, shadows: list[np.ndarray]) -> None:
        """Has the model measured as it will be, and leaves it as it is."""
        assert self._size_of is not None
        with as_they_were([held.kernel for held in self._held]):
            for held, shadow in zip(self._held, shadows, strict=True):
                held.kernel.variable.assign(held.on_grid(shadow))
            self._besides += float(self._size_of(self.model)) - self.coded_bytes

    def _prune(self, shadows: list[np.ndarray], share: float) -> bool:
        """Masks a share of the weights that have to become zero. Returns whether that is more than before."""
        ranking = LampRanking(shadows)
        counts = ranking.counts(round(self._zeros(ranking) * share))
        changed = False
        for held, shadow, count in zip(self._held, shadows, counts, strict=True):
            changed |= held.prune(shadow, count)
        if changed:
            self._hold()
        return changed

    def _zeros(self, ranking: LampRanking) -> int:
        """How many zeros of all weights the size asks for."""
        low, high = 0, ranking.size
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            size = sum(held.bytes_at(n) for held, n in zip(self._held, ranking.counts(middle), strict=True))
            if self._besides + size > self.target_bytes:
                low = middle
            else:
                high = middle
        return high

    def _measure(self) -> float:
        return self.coded_bytes

    def _unfinished(self) -> str:
        return (
            f"training ended at step {self._clock.step}, before weights had the values of levels: the file will be "
            f"larger than the {self.coded_bytes:.0f} bytes that were estimated"
        )


def _levels(value: Any, argument: str, least: int) -> int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and least <= int(value) <= MOST_LEVELS:
        return int(value)
    raise InputError(f"{argument}={value!r}: give a whole number of levels from {least} to {MOST_LEVELS}")
