"""Functions of int16 numbers, as the engine computes them: from tables, with straight lines between the entries.

The tables are those of `schema.ops.interpolated_table` and `schema.ops.softmax`, which name their sources. Whole
numbers are held in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from schema.ops import interpolated_table, softmax
from xnn_tf.quantization.integers import Exact, exponent, half_away, real, rescaled, wide

UNITS = 3 * 4096  # of the table of the logistic function
SHORT = 32767.0


def function_of(name: str, function: Any, steps: Any, scale_in: Any, mask: Any = None) -> Exact | None:
    """A function of the integers `steps` of scale `scale_in`, None where the result is what the function gives,
    rounded. function: takes real numbers. mask: bools that say what a softmax lets in.
    """
    known: dict[str, Exact] = {
        "sigmoid": lambda scale: real(_logistic(_in_units(steps, scale_in, 0)), scale),
        "tanh": lambda scale: real(_tanh(_in_units(steps, scale_in, 1)), scale),
        "softmax": lambda scale: real(_softmax(steps, scale_in, mask), scale),
        "gelu": lambda scale: real(_look_up(steps, _table(function, scale_in, scale)), scale),
        "relu": lambda scale: function(real(rescaled(steps, scale_in / scale), scale)),
        "relu6": lambda scale: function(real(rescaled(steps, scale_in / scale), scale)),
    }
    return known.get(name)


def _entry(table: Any, index: Any) -> Any:
    last = tf.cast(tf.shape(table)[0] - 1, index.dtype)
    known = tf.where(tf.math.is_nan(index), tf.zeros_like(index), index)  # ranges that were never learned
    return tf.gather(table, tf.cast(tf.clip_by_value(known, 0.0, last), tf.int32))


def _look_up(steps: Any, table: Any) -> Any:
    """interpolated_table.look_up."""
    steps = tf.clip_by_value(steps, -(2.0**15), 2.0**15 - 1)
    index = tf.floor(steps / 128)
    base, following = _entry(table, index + 256), _entry(table, index + 257)
    return base + tf.floor(((following - base) * (steps - 128 * index) + 64) / 128)


def _in_units(steps: Any, scale: Any, most_shift: int) -> Any:
    """interpolated_table.in_table_units."""
    logarithm = tf.math.log(wide(scale)) / np.log(2.0)
    power = tf.round(logarithm)
    multiplier = wide(scale) * UNITS
    right = tf.clip_by_value(exponent(SHORT / multiplier) - 1, 0.0, 31.0)
    half = tf.floor(2.0 ** (right - 1))  # 0 for no bits
    units = tf.floor((steps * tf.floor(multiplier * 2.0**right) + half) / 2.0**right)
    is_power = (tf.abs(logarithm - power) < 1e-3) & (power + 12 >= 0) & (power + 12 <= most_shift)
    return tf.where(is_power, steps * 3 * 2.0 ** (power + 12), units)


def _logistic_at(units: Any, spacing: int, beyond: int) -> Any:
    """`spacing` times 2**16 times the logistic function of |units|, whose entries are `spacing` apart."""
    table = tf.constant(interpolated_table.logistic_table().astype(np.float64))
    magnitude = tf.abs(units)
    index = tf.floor(magnitude / spacing)
    low, high = _entry(table, index), _entry(table, index + 1)
    between = low * spacing + (magnitude - spacing * index) * (high - low)
    return tf.where(index >= 255, tf.constant(float(beyond), tf.float64), between)


def _logistic(units: Any) -> Any:
    """interpolated_table.logistic."""
    result = _logistic_at(units, 512, 0x7FFF << 10)
    result = tf.where(units >= 0, result + 2.0**9, 2.0**25 - result + 2.0**9 - 1)
    return tf.floor(result / 2.0**10)


def _tanh(units: Any) -> Any:
    """interpolated_table.tanh."""
    result = _logistic_at(units, 256, 0xFFFF << 8)
    result = tf.where(units >= 0, result - 2.0**23 + 2.0**7, 2.0**23 - result + 2.0**7 - 1)
    return tf.floor(result / 2.0**8)


def _softmax(steps: Any, scale: Any, mask: Any) -> Any:
    """Softmax.wide of schema.ops.softmax, along the last axis."""
    let_in = None
    if mask is not None:
        nothing = tf.logical_not(tf.reduce_any(mask, axis=-1, keepdims=True))
        largest = tf.reduce_max(tf.where(mask, steps, -SHORT - 1), axis=-1, keepdims=True)
        steps, let_in = tf.where(mask, steps, largest), tf.logical_or(mask, nothing)
    exponentials, inverses = (
        tf.constant(table().astype(np.float64)) for table in (softmax.exponential_table, softmax.inverse_table)
    )
    below = rescaled(steps - tf.reduce_max(steps, axis=-1, keepdims=True), wide(scale) * (65535.0 / 10.0))
    above = _look_up(below + 32767, exponentials)
    if let_in is not None:
        above = tf.where(let_in, above, 0.0)
    total = tf.reduce_sum(above, axis=-1, keepdims=True)
    bits = exponent(total)
    shifted = tf.floor((total * 2.0 ** (31 - bits) + 2.0**13) / 2.0**14)
    inverse = _look_up(shifted - 2.0**15 - 2.0**16, inverses)
    return tf.clip_by_value(tf.floor(above * inverse / 2.0 ** (bits - 1) + 0.5), 0.0, SHORT)


def _table(function: Callable[[Any], Any], scale_in: Any, scale_out: Any) -> Any:
    """interpolated_table.table of a function whose name the engine knows: 513 entries, in float32 as there."""

    def at(points: Any) -> Any:
        return tf.cast(function(wide(points)), tf.float32) * inverse

    first, last = scale_in * tf.constant(-32768.0), scale_in * tf.constant(32767.0)
    inverse = 65536.0 / (scale_out * 32767.0 - scale_out * tf.constant(-32768.0))
    step = (last - first) / 512.0
    points = first + tf.range(513, dtype=tf.float32) * step
    exact, middles = at(points), half_away(at(points[:-1] + step / 2.0))
    samples = half_away(exact)
    on_the_line = half_away((exact[1:] + samples[:-1]) / 2.0)
    moved = samples[:-1] - half_away((on_the_line - middles) / 2.0)
    entries = tf.concat([moved, half_away(at(tf.reshape(last, [1])))], axis=0)
    return wide(tf.clip_by_value(entries, -32768.0, 32767.0))
