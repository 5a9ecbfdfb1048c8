"""The range of an activation: where it comes from, and rounding to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from xnn_tf.quantization.fake_quantize import fake_quantize, in_place_of, scale_and_zero_point, scale_between
from xnn_tf.quantization.integers import Exact, half_away, real
from xnn_tf.quantization.observing import is_observing
from xnn_tf.quantization.settings import Settings

LEARNED_RATE = 0.1  # learned ends of a range move slower than weights: every number of the tensor pulls at them

NEAR_END = 2.0**-8  # of the results of a sigmoid or tanh


class Range(Protocol):
    """What a tensor is rounded to."""

    bits: int

    def ends(self) -> tuple[Any, Any]:
        """(lowest, highest) real number, scalars of float32 with zero between them."""

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        """x, rounded; ranges that follow the data do so while training. exact: what the engine gives in place of x,
        where that is not x rounded once; in training it is heeded of int16, of which a step is hardly more than what
        float32 sums are off.
        """


def rounded(x: Any, low: Any, high: Any, bits: int, training: bool, exact: Exact | None) -> Any:
    """x in steps of the range's 8 or 16 bits."""
    scale = scale_between(low, high, bits)
    if bits == 16:
        # FakeQuant itself misses some, as 16 bits leave float32 few to tell ties by, and it has no -32768.
        steps = half_away((tf.stop_gradient(x) if exact is None else exact(scale)) / scale)
        engine = real(tf.clip_by_value(steps, -32768.0, 32767.0), scale)
        return in_place_of(fake_quantize(x, low, high, bits), engine)
    if exact is not None and not training:
        x = in_place_of(x, exact(scale))
    return fake_quantize(x, low, high, bits)


def scale_of(source: Range) -> tuple[Any, Any]:
    """(scale, zero point) of a range."""
    return scale_and_zero_point(*source.ends(), source.bits)


class FixedRange:
    """The range that an op's specification gives its output, whatever the data.

    Nothing is rounded to the range while training: a loss cannot take the logarithm of a probability of 0.
    """

    is_learned = False

    def __init__(self, low: float, high: float, bits: int):
        self.bits = bits
        step = (high - low) / 2**bits
        # 8 bits: from low to one step below high; 16 bits: the same on both sides of zero.
        self._ends = (low, high - step) if bits == 8 else (-high * (1 - 2.0**-15), high * (1 - 2.0**-15))

    def ends(self) -> tuple[Any, Any]:
        return tf.constant(self._ends[0], tf.float32), tf.constant(self._ends[1], tf.float32)

    ends_in_training = ends

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        if not training:
            return rounded(x, *self.ends(), self.bits, training, exact)
        if self.bits == 8 or exact is None:
            return x
        # Tables of int16 are off by more than a step, but not near the ends, where rounding would stop gradients.
        low, high = self.ends()
        inside = tf.minimum(x - low, high - x) > NEAR_END
        return in_place_of(x, tf.where(inside, exact(scale_between(low, high, self.bits)), x))


class SettledRange:
    """Another one as it is: worked out once for all that is rounded to it, which does not move it."""

    def __init__(self, of: Range):
        self.bits, self._ends = of.bits, of.ends()

    def ends(self) -> tuple[Any, Any]:
        return self._ends

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        return rounded(x, *self._ends, self.bits, training, exact)


class TableRange:
    """From the smallest to the largest number of a table, zero among them: that of what is looked up in it."""

    def __init__(self, table: Any, bits: int):
        self._table = table
        self.bits = bits

    def ends(self) -> tuple[Any, Any]:
        table = tf.stop_gradient(tf.convert_to_tensor(self._table))
        return _proper(tf.reduce_min(table), tf.reduce_max(table), self.bits)

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        return rounded(x, *self.ends(), self.bits, training, exact)


class TrainedRange:
    """A range with variables. They are NaN until data was seen: training has to begin, or `calibration` be given.

    ranges="moving": the mean of the smallest and largest numbers of past batches, exponentially weighted, as in Jacob
    et al. 2018; of the first 1 / (1 - momentum) batches the plain mean, so that none of them counts more than others.
    What calibration found counts as a batch. "learned": they begin with the first batch, and the gradient moves them
    from then on.
    """

    def __init__(self, owner: Any, name: str, settings: Settings):
        self.bits = settings.activations
        self.is_learned = settings.ranges == "learned"
        self._momentum = settings.momentum
        self.low = owner.add_range_end(f"{name}_low", self.is_learned)
        self.high = owner.add_range_end(f"{name}_high", self.is_learned)
        self._batches = None if self.is_learned else owner.add_counter(f"{name}_batches")

    def ends(self) -> tuple[Any, Any]:
        low, high = tf.convert_to_tensor(self.low), tf.convert_to_tensor(self.high)
        return _proper(low, high, self.bits)

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        if training:
            self._follow(x)
        elif is_observing():
            self._widen(x)
        low, high = self.ends_in_training() if training or not self.is_learned else self.ends()
        return rounded(x, low, high, self.bits, training, exact)

    def ends_in_training(self) -> tuple[Any, Any]:
        """`ends`, with the gradient that they have while training."""
        low, high = self.ends()
        if self.is_learned:
            return slowed(low), slowed(high)
        return tf.stop_gradient(low), tf.stop_gradient(high)

    def _widen(self, x: Any) -> None:
        for end, seen, wider in ((self.low, tf.reduce_min(x), tf.minimum), (self.high, tf.reduce_max(x), tf.maximum)):
            end.assign(tf.where(_unknown(end), seen, wider(end, seen)))
        if self._batches is not None:
            self._batches.assign(tf.maximum(self._batches, 1))

    def _follow(self, x: Any) -> None:
        x = tf.stop_gradient(x)
        weight = tf.zeros(())
        if self._batches is not None:
            batches = tf.convert_to_tensor(self._batches)
            weight = tf.maximum(1 - self._momentum, 1 / (tf.cast(batches, tf.float32) + 1))
            self._batches.assign(batches + 1)
        for end, seen in ((self.low, tf.reduce_min(x)), (self.high, tf.reduce_max(x))):
            old = tf.stop_gradient(tf.convert_to_tensor(end))
            end.assign(tf.where(_unknown(end), seen, old + weight * (seen - old)))


class PowerRange(TrainedRange):
    """Of 16 bits, in steps of a power of two: the engine adds such numbers without rounding, and reads its tables of
    sigmoid and tanh without rescaling. Up to one of the bits is spent for that.

    least: the range reaches at least so far, a power of two.
    """

    def __init__(self, owner: Any, name: str, settings: Settings, least: float):
        super().__init__(owner, name, replace(settings, activations=16))
        self._least = least

    def ends(self) -> tuple[Any, Any]:
        _, reached = super().ends()
        known = tf.stop_gradient(reached)
        powers = tf.constant(2.0 ** np.arange(-24, 25), tf.float32)
        beyond = powers >= tf.maximum(known * (1 - 2.0**-16), self._least)
        power = tf.reduce_min(tf.where(beyond, powers, tf.constant(2.0**25)))
        high = power * (1 - 2.0**-15) + (reached - known)  # NaN while unknown
        return -high, high

    def follow(self, *seen: Any) -> None:
        """Let it follow what these tensors had, together."""
        ends = [end for x in seen for end in (tf.reduce_min(x), tf.reduce_max(x))]
        self._follow(tf.stack(ends))


class DoubledRange:
    """Twice another one: of the difference of two numbers that are in it."""

    def __init__(self, of: TrainedRange):
        self.bits, self.is_learned, self._of = of.bits, of.is_learned, of

    def ends(self) -> tuple[Any, Any]:
        return tuple(2 * end for end in self._of.ends())

    def ends_in_training(self) -> tuple[Any, Any]:
        return tuple(2 * end for end in self._of.ends_in_training())

    def __call__(self, x: Any, training: bool, exact: Exact | None = None) -> Any:
        return rounded(x, *self.ends(), self.bits, training, exact)


def _unknown(end: Any) -> Any:
    return tf.math.is_nan(tf.convert_to_tensor(end))


def slowed(end: Any) -> Any:
    """The same number, with LEARNED_RATE of its gradient."""
    return LEARNED_RATE * end + tf.stop_gradient(end - LEARNED_RATE * end)


def _proper(low: Any, high: Any, bits: int) -> tuple[Any, Any]:
    """Ends with zero between them and not both zero; NaN stays."""
    low, high = tf.minimum(low, 0.0), tf.maximum(high, 0.0)
    if bits == 16:
        high = tf.maximum(-low, high)
        low = -high
    empty = tf.equal(low, high)
    return tf.where(empty, -tf.ones_like(low) if bits == 16 else low, low), tf.where(empty, tf.ones_like(high), high)
