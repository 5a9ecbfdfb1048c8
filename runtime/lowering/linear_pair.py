"""Sums of int8 tensors as linear functions: found and proven on all 65,536 pairs of operands."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from runtime.lowering.base import LoweringContext
from runtime.lowering.requantization import per_tensor
from schema import fixedpoint, ops
from schema.graph import TensorType
from schema.ops.attributes import ArithmeticAttributes, activation_range
from schema.quantization import Quantization

SIGNS = {"ADD": 1, "SUB": -1}
LARGEST = 2.0**12
ROUNDING = 2.0**-21  # more than the kernel's float32 arithmetic can be off, of the largest number in it
WORTH = 2.0**-6  # with a larger margin too many results would have to be looked up
SMALLEST_FACTOR = 2.0**-12  # from there on float64 holds what float32 arithmetic rounds
NEAR = 2.0**-10  # of a tie: pairs whose result small changes of the function can change
NUDGE = 2.0**-18
TOP_BYTE = 2.0**-24  # of an int32 that has a number in its top byte
EVERY = np.arange(-128, 128, dtype=np.float64)

Scale = tuple[np.float32, int]


@dataclass(frozen=True)
class LinearSum:
    """clip(rint(a * a_factor + (b * b_factor + offset)), low, high) in float32, whether or not products are rounded
    before they are added: the op's result for all int8 numbers a and b. Factors and offset are float32 numbers.
    """

    a_factor: float
    b_factor: float
    offset: float
    low: int
    high: int

    def vectors(self) -> np.ndarray:
        """What runtime.kernels.linear_sum reads: 16 float32 each of the factors, for numbers in the tops of int32, and
        the offset, then 64 int8 each of low and high; as bytes.
        """
        factors = [self.a_factor * TOP_BYTE, self.b_factor * TOP_BYTE, self.offset]
        numbers = np.repeat(np.array(factors, np.float32), 16)
        return np.concatenate([numbers.view(np.int8), np.repeat(np.array([self.low, self.high], np.int8), 64)])


def find_sum(
    op: str, a: TensorType | None, b: TensorType | None, output: TensorType, low: int, high: int
) -> LinearSum | None:
    """The op of two int8 tensors, clamped to low..high, as a function that gives its result for all pairs of numbers;
    None where there is none.
    """
    scales = per_tensor(a), per_tensor(b), per_tensor(output)
    if op not in SIGNS or None in scales:
        return None
    return _find_sum(op, *scales, low, high)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=1024)
def _find_sum(op: str, a: Scale, b: Scale, output: Scale, low: int, high: int) -> LinearSum | None:
    a_factor, b_factor = (np.float32(float(scale) / float(output[0])) for scale, _ in (a, b))
    if min(a_factor, b_factor) < SMALLEST_FACTOR or 256 * (a_factor + b_factor) + 128 > LARGEST:
        return None
    table = np.clip(_table(op, a, b, output), low, high)
    b_factor *= SIGNS[op]
    offset = output[1] - float(a_factor) * a[1] - float(b_factor) * b[1]
    exact = float(a_factor) * EVERY[:, np.newaxis] + float(b_factor) * EVERY + offset
    near = np.abs(exact - np.floor(exact) - 0.5) < NEAR
    first, second = (EVERY[index] for index in np.nonzero(near))
    for numbers in _candidates(a_factor, b_factor, offset):
        if (_rounded(*numbers, first, second, low, high) != table[near]).any():
            continue
        if (_rounded(*numbers, EVERY[:, np.newaxis], EVERY, low, high) == table).all():
            a_float, b_float, offset = map(float, numbers)
            return LinearSum(a_float, b_float, offset, low, high)
    return None


def _table(op: str, a: Scale, b: Scale, output: Scale) -> np.ndarray:
    """The reference's result for every pair of int8 numbers: int8 (256, 256)."""
    every = EVERY.astype(np.int8)
    arrays = [every[:, np.newaxis], every[np.newaxis]]
    types = [TensorType(x.shape, x.dtype, Quantization(*scale)) for x, scale in zip(arrays, (a, b), strict=True)]
    result = TensorType((256, 256), np.dtype(np.int8), Quantization(*output))
    return ops.get(op).reference(ArithmeticAttributes(), arrays, types, [result])[0]


def _candidates(
    a_factor: np.float32, b_factor: np.float32, offset: float
) -> Iterator[tuple[np.float32, np.float32, np.float32]]:
    """Functions near to one, the nearest first."""

    def stepped(factor: np.float32, steps: int) -> np.float32:
        return np.float32(factor + steps * np.spacing(factor))

    for a_steps, b_steps in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)):
        for nudge in sorted(range(-6, 7), key=abs):
            # A multiple of 2^-30, so that float64 holds all sums.
            moved = np.float32(np.rint((offset + nudge * NUDGE) * 2**30) / 2**30)
            yield stepped(a_factor, a_steps), stepped(b_factor, b_steps), moved


def _rounded(
    a_factor: np.float32, b_factor: np.float32, offset: np.float32, a: np.ndarray, b: np.ndarray, low: int, high: int
) -> np.ndarray:
    """What a kernel gives for float64 `a` and `b`; NaN where that depends on how it multiplies and adds."""
    fused = (b * np.float64(b_factor) + np.float64(offset)).astype(np.float32)
    fused = (a * np.float64(a_factor) + fused.astype(np.float64)).astype(np.float32)
    separate = a.astype(np.float32) * a_factor + (b.astype(np.float32) * b_factor + offset)
    found, other = (np.clip(np.rint(value), low, high) for value in (fused, separate))
    return np.where(found == other, found, np.nan)


def find_linear(context: LoweringContext, table: np.ndarray) -> dict[str, float] | None:
    """Slots of BINARY_LINEAR, or None where the table is no rounded linear function.

    table: int8 (256, 256), the result of each pair. `margin` is how near to a tie results still differ from it, so that
    the kernel looks those up.
    """
    sign, (first, second) = SIGNS.get(context.node.op), (per_tensor(kind) for kind in context.inputs)
    output = per_tensor(context.outputs[0])
    if sign is None or first is None or second is None or output is None:
        return None
    a_factor, b_factor = float(first[0]) / float(output[0]), sign * float(second[0]) / float(output[0])
    offset = output[1] - a_factor * first[1] - b_factor * second[1]
    exact = a_factor * EVERY[:, np.newaxis] + b_factor * EVERY + offset
    largest = np.abs(exact).max() + abs(offset)
    if largest > LARGEST:
        return None
    low, high = fixedpoint.activation_bounds(*activation_range(context.attributes), context.outputs[0])
    rounded = np.rint(exact)
    differ = np.clip(rounded, low, high) != table
    margin = ROUNDING * largest + (0.5 - np.abs(exact - rounded))[differ].max(initial=0.0)
    if margin > WORTH:
        return None
    factors = {"a_factor": a_factor, "b_factor": b_factor, "offset": offset, "margin": margin}
    return factors | {"low": float(low), "high": float(high)}
