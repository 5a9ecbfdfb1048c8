"""Sums, products and functions of int16 numbers whose steps are powers of two, real numbers for what they stand for.

Float32 holds such numbers, their sums, and what the engine rounds of their products. `Outside` of training there are
FakeQuant nodes, for the converter; `InTraining` each result is made of few operations, as loops run them often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from schema.ops import interpolated_table
from xnn_tf.quantization.fake_quantize import quotient
from xnn_tf.quantization.integers import Products, half_away, real, whole, wide
from xnn_tf.quantization.observing import is_observing
from xnn_tf.quantization.ranges import FixedRange, SettledRange, scale_of
from xnn_tf.quantization.strategies.functions import FIXED
from xnn_tf.quantization.strategies.products import times_matrix
from xnn_tf.quantization.tables import UNITS

BELOW = {"sigmoid": 0.0, "tanh": 1.0}
"""Functions that the engine has a table for, and how far their results reach below zero."""
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "linear": lambda x: x,
}
FARTHEST = 255 * 512  # in table units, from where on functions are constant
FAR = 1e9
FINE = 2.0**-24
NOT_A_TIE = 1 + 2.0**-20  # times that, ties of float32 numbers of up to 17 bits round away from zero
NOT_A_WIDE_TIE = 1 + 2.0**-40  # the same of float64 numbers

Ranges = Callable[[str], Any]


class Arithmetic(Protocol):
    """Names are those of the ranges that results are rounded to. The operands of sums have their steps."""

    def known(self, name: str, x: Any) -> Any:
        """x, which is rounded already."""

    def matrix(self, name: str, source: Any, kernel: Any, steps: Any, bias: Any) -> Callable[[Any], Any]:
        """x -> x @ kernel + bias. source: the range of x. kernel: (in, out), rounded to steps (out,)."""

    def plus(self, name: str, a: Any, b: Any, function: str = "linear", finer: bool = False) -> Any:
        """function(a + b), for "relu" and "linear". finer: whether the steps of a may be finer ones."""

    def minus(self, name: str, a: Any, b: Any) -> Any:
        """a - b in steps of twice a's, of which b has finer ones or the same."""

    def times(self, name: str, a: Any, b: Any) -> Any:
        """a * b."""

    def functions(self, name: str, x: Any, parts: Sequence[str]) -> list[Any]:
        """A function of each of the equal parts of x, which has the range of that name."""


class Outside:
    """Of training: what the file computes. Ranges are worked out before the loop, unless they widen in it."""

    def __init__(self, ranges: Ranges, names: Sequence[str]):
        self._range = ranges
        if not is_observing():
            self._range = {name: SettledRange(ranges(name)) for name in names}.__getitem__

    def known(self, name: str, x: Any) -> Any:
        return self._range(name)(x, False)

    def matrix(self, name: str, source: Any, kernel: Any, steps: Any, bias: Any) -> Callable[[Any], Any]:
        target = self._range(name)

        def multiply(x: Any) -> Any:
            result, exact = times_matrix(x, kernel, steps, bias, (source, target), False)
            return target(result, False, exact)

        return multiply

    def plus(self, name: str, a: Any, b: Any, function: str = "linear", finer: bool = False) -> Any:
        activation = FUNCTIONS[function]

        def exact(scale: Any) -> Any:
            return activation(half_away(a / scale) * scale + b)

        return self._range(name)(activation(a + b), False, exact)

    def minus(self, name: str, a: Any, b: Any) -> Any:
        return self._range(name)(a - b, False)

    def times(self, name: str, a: Any, b: Any) -> Any:
        return self._range(name)(a * b, False, lambda scale: tf.round(a * b / scale) * scale)

    def functions(self, name: str, x: Any, parts: Sequence[str]) -> list[Any]:
        return [self._function(name, piece, part) for piece, part in zip(_split(x, len(parts)), parts, strict=True)]

    def _function(self, name: str, x: Any, part: str) -> Any:
        source, y = self._range(name), FUNCTIONS[part](x)
        if part == "linear":
            return y
        if part not in BELOW:
            return source(y, False)
        return result_range(part)(y, False, lambda scale: _in_table(x, part))


class InTraining:
    """exact: whether products of matrices are those of the integers, in float64. Ranges do not follow what is rounded
    here: in a loop they cannot.
    """

    def __init__(self, ranges: Ranges, names: Sequence[str], exact: bool):
        self._grids = {name: _grid(ranges(name)) for name in names}
        self._exact = exact

    def known(self, name: str, x: Any) -> Any:
        return x

    def rounded(self, name: str, x: Any) -> Any:
        return _snapped(x, self._grids[name])

    def matrix(self, name: str, source: Any, kernel: Any, steps: Any, bias: Any) -> Callable[[Any], Any]:
        grid = self._grids[name]
        if not self._exact:
            return lambda x: _snapped(_affine(x, kernel, bias), grid)
        largest = tf.reduce_max(tf.abs(kernel), 0)
        scale = tf.where(tf.math.is_nan(source.ends()[1]), FINE, scale_of(source)[0])
        integers = whole(kernel, steps)
        products = Products(lambda: integers, scale, largest, tf.round(largest / steps), bias)
        ratio, addend = products.in_steps(grid.step)
        matrix = integers * (ratio / wide(scale) * NOT_A_WIDE_TIE)
        addend = None if addend is None else addend * (ratio * NOT_A_WIDE_TIE)
        return lambda x: _multiplied(x, kernel, bias, matrix, addend, grid)

    def plus(self, name: str, a: Any, b: Any, function: str = "linear", finer: bool = False) -> Any:
        grid = self._grids[name]
        return FUNCTIONS[function](_clipped((_snapped(a, grid, NOT_A_TIE) if finer else a) + b, grid))

    def minus(self, name: str, a: Any, b: Any) -> Any:
        return _snapped(a - b, self._grids[name], NOT_A_TIE)

    def times(self, name: str, a: Any, b: Any) -> Any:
        return _snapped(a * b, self._grids[name])

    def functions(self, name: str, x: Any, parts: Sequence[str]) -> list[Any]:
        if BELOW.keys() >= set(parts):
            return _split(_looked_up(x, parts), len(parts))
        pieces = zip(_split(x, len(parts)), parts, strict=True)
        return [_looked_up(piece, [part]) if part in BELOW else FUNCTIONS[part](piece) for piece, part in pieces]


def result_range(function: str) -> FixedRange:
    """That of the results of a function that the engine has a table for."""
    return FixedRange(*FIXED[function], 16)


def _split(x: Any, count: int) -> list[Any]:
    return tf.split(x, count, -1) if count > 1 else [x]


def _affine(x: Any, kernel: Any, bias: Any) -> Any:
    return tf.matmul(x, kernel) if bias is None else tf.matmul(x, kernel) + bias


class _Grid(NamedTuple):
    """The ends of a range, and its integers' as real numbers; both out of reach while it is unknown, the steps then
    too fine to be seen.
    """

    low: Any
    high: Any
    step: Any
    bottom: Any
    top: Any
    learned: bool


def _grid(source: Any) -> _Grid:
    low, high = source.ends_in_training()
    unknown = tf.math.is_nan(high)
    low, high = tf.where(unknown, -FAR, low), tf.where(unknown, FAR, high)
    step = tf.where(unknown, FINE, tf.stop_gradient(quotient(high, 32767.0)))
    bottom, top = tf.where(unknown, -FAR, -32768 * step), tf.where(unknown, FAR, 32767 * step)
    return _Grid(low, high, step, bottom, top, source.is_learned)


def _clipped(x: Any, grid: _Grid) -> Any:
    return _within(x, grid, lambda x: x)


def _snapped(x: Any, grid: _Grid, factor: float = 1.0) -> Any:
    """x in whole steps, ties to even ones. factor: see NOT_A_TIE."""
    return _within(x, grid, lambda x: tf.round(x * (factor / grid.step)) * grid.step)


def _within(x: Any, grid: _Grid, rounded: Callable[[Any], Any]) -> Any:
    """x, rounded, within the integers' ends, with FakeQuant's gradients of x and of the ends."""

    @tf.custom_gradient
    def within(x: Any, *ends: Any) -> Any:
        y = tf.raw_ops.ClipByValue(t=rounded(x), clip_value_min=grid.bottom, clip_value_max=grid.top)
        return y, lambda upstream: _gradients(upstream, x, grid)[: 1 + len(ends)]

    return within(x, *((grid.low, grid.high) if grid.learned else ()))


def _gradients(upstream: Any, x: Any, grid: _Grid) -> tuple[Any, Any, Any]:
    """FakeQuant's, of x and of the ends."""
    low, high = tf.stop_gradient(grid.low), tf.stop_gradient(grid.high)
    return tf.quantization.fake_quant_with_min_max_vars_gradient(upstream, x, low, high, 16, narrow_range=True)


def _multiplied(x: Any, kernel: Any, bias: Any, matrix: Any, addend: Any, grid: _Grid) -> Any:
    """x @ kernel + bias, as the engine rounds it. matrix, addend: the same in steps of the result, float64."""
    real_step = grid.step

    @tf.custom_gradient
    def product(x: Any, kernel: Any, *others: Any) -> Any:
        steps = tf.matmul(wide(x), matrix)
        y = real(tf.round(steps if bias is None else steps + addend), real_step)

        def gradient(upstream: Any) -> tuple[Any, ...]:
            of_sums, *of_ends = _gradients(upstream, y, grid)
            of_x = tf.matmul(of_sums, kernel, transpose_b=True)
            of_kernel = tf.matmul(x, of_sums, transpose_a=True)
            of_bias = [] if bias is None else [tf.reduce_sum(of_sums, 0)]
            return of_x, of_kernel, *of_bias, *(of_ends if grid.learned else [])

        return tf.raw_ops.ClipByValue(t=y, clip_value_min=grid.bottom, clip_value_max=grid.top), gradient

    return product(x, kernel, *([] if bias is None else [bias]), *((grid.low, grid.high) if grid.learned else ()))


def _looked_up(x: Any, parts: Sequence[str]) -> Any:
    """A function of each of the equal parts of x, by the engine's tables."""
    kinds = sorted(set(parts))
    count = x.shape[-1] // len(parts)
    places = np.repeat([kinds.index(part) for part in parts], count)
    first = (places * (2 * FARTHEST + 1) + FARTHEST + 0.5).astype(np.float32)
    below = np.repeat([BELOW[part] for part in parts], count).astype(np.float32)
    if len(kinds) == 1:
        first, below = first[:1], below[:1]
    table = tf.constant(np.concatenate([_table(kind) for kind in kinds]))
    end = tf.constant(FARTHEST / UNITS, tf.float32)

    @tf.custom_gradient
    def found(x: Any) -> Any:
        units = tf.raw_ops.ClipByValue(t=x, clip_value_min=-end, clip_value_max=end) * float(UNITS)
        y = tf.gather(table, tf.cast(units + first, tf.int32))
        return y, lambda upstream: upstream * ((y + below) * (1 - y))

    return found(x)


def _in_table(x: Any, part: str) -> Any:
    """A function of x by the engine's table, without a gradient; of anything while ranges are unknown."""
    end = FARTHEST / UNITS
    known = tf.where(tf.math.is_nan(x), 0.0, tf.clip_by_value(x, -end, end))
    return tf.gather(tf.constant(_table(part)), tf.cast(known * float(UNITS) + (FARTHEST + 0.5), tf.int32))


@cache
def _table(function: str) -> np.ndarray:
    """Results at all multiples of 1/UNITS, real numbers."""
    units = np.arange(-FARTHEST, FARTHEST + 1)
    integers = interpolated_table.logistic(units) if function == "sigmoid" else interpolated_table.tanh(units)
    return integers.astype(np.float32) / np.float32(2**15)
