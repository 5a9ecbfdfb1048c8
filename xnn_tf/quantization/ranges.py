"""The range of an activation: where it comes from, and rounding to it."""

from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import fake_quantize, scale_and_zero_point
from xnn_tf.quantization.observing import is_observing
from xnn_tf.quantization.settings import Settings

LEARNED_RATE = 0.1  # learned ends of a range move slower than weights: every number of the tensor pulls at them


class Range(Protocol):
    """What a tensor is rounded to."""

    bits: int

    def ends(self) -> tuple[Any, Any]:
        """(lowest, highest) real number, scalars of float32 with zero between them."""

    def __call__(self, x: Any, training: bool) -> Any:
        """x, rounded; ranges that follow the data do so while training."""


def scale_of(source: Range) -> tuple[Any, Any]:
    """(scale, zero point) of a range."""
    return scale_and_zero_point(*source.ends(), source.bits)


class FixedRange:
    """The range that an op's specification gives its output, whatever the data.

    Nothing is rounded while training: a loss cannot take the logarithm of a probability that was rounded to 0.
    """

    def __init__(self, low: float, high: float, bits: int):
        self.bits = bits
        step = (high - low) / 2**bits
        # 8 bits: from low to one step below high; 16 bits: the same on both sides of zero.
        self._ends = (low, high - step) if bits == 8 else (-high * (1 - 2.0**-15), high * (1 - 2.0**-15))

    def ends(self) -> tuple[Any, Any]:
        return tf.constant(self._ends[0], tf.float32), tf.constant(self._ends[1], tf.float32)

    def __call__(self, x: Any, training: bool) -> Any:
        return x if training else fake_quantize(x, *self.ends(), self.bits)


class TableRange:
    """From the smallest to the largest number of a table, zero among them: that of what is looked up in it."""

    def __init__(self, table: Any, bits: int):
        self._table = table
        self.bits = bits

    def ends(self) -> tuple[Any, Any]:
        table = tf.stop_gradient(tf.convert_to_tensor(self._table))
        return _proper(tf.reduce_min(table), tf.reduce_max(table), self.bits)

    def __call__(self, x: Any, training: bool) -> Any:
        return fake_quantize(x, *self.ends(), self.bits)


class TrainedRange:
    """A range with variables. They are NaN until data was seen: training has to begin, or `calibration` be given.

    ranges="moving": the mean of the smallest and largest numbers of past batches, exponentially weighted, as in Jacob
    et al. 2018. "learned": they begin so, with the first batch, and the gradient moves them from then on.
    """

    def __init__(self, owner: Any, name: str, settings: Settings):
        self.bits = settings.activations
        self._learned = settings.ranges == "learned"
        self._momentum = settings.momentum
        self.low = owner.add_range_end(f"{name}_low", self._learned)
        self.high = owner.add_range_end(f"{name}_high", self._learned)

    def ends(self) -> tuple[Any, Any]:
        low, high = tf.convert_to_tensor(self.low), tf.convert_to_tensor(self.high)
        return _proper(low, high, self.bits)

    def __call__(self, x: Any, training: bool) -> Any:
        if training:
            self._follow(x)
        elif is_observing():
            self._widen(x)
        low, high = self.ends()
        if not self._learned:
            low, high = tf.stop_gradient(low), tf.stop_gradient(high)
        elif training:
            low, high = _slowed(low), _slowed(high)
        return fake_quantize(x, low, high, self.bits)

    def _widen(self, x: Any) -> None:
        for end, seen, wider in ((self.low, tf.reduce_min(x), tf.minimum), (self.high, tf.reduce_max(x), tf.maximum)):
            end.assign(tf.where(_unknown(end), seen, wider(end, seen)))

    def _follow(self, x: Any) -> None:
        x = tf.stop_gradient(x)
        for end, seen in ((self.low, tf.reduce_min(x)), (self.high, tf.reduce_max(x))):
            old = tf.stop_gradient(tf.convert_to_tensor(end))
            later = old if self._learned else old + (1 - self._momentum) * (seen - old)
            end.assign(tf.where(_unknown(end), seen, later))


def _unknown(end: Any) -> Any:
    return tf.math.is_nan(tf.convert_to_tensor(end))


def _slowed(end: Any) -> Any:
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
