"""What runtime.kernels.requantize_lanes reads of each channel, in the order of lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runtime.kernels.matmul_parameters import (
    DOUBLE_BY_FLOAT64,
    DOUBLE_BY_FLOAT64_POSITIVE,
    EXACT,
    FP32_ROUND_EVEN,
    TFLITE_DOUBLE,
)
from runtime.lowering.requantization import Requantization
from schema import fixedpoint

LANES = 16
LARGEST_ROUNDED = 2**22  # numbers up to there are rounded by adding 1.5 * 2**23
INT32 = 2**31 - 1
SATURATED = 512  # a result as far from the zero point is beyond all bounds of int8
MOST_TIES = 4096  # of a channel that are looked at
CHANNELS_AT_ONCE = 256  # of which all ties are looked at


def lane_order(vectors: int) -> np.ndarray:
    """(vectors * 16,): the channel in each element of `vectors` vectors whose bytes come out in order once packed."""
    lane, i = np.divmod(np.arange(LANES), 4)
    return (4 * vectors * lane + 4 * np.arange(vectors)[:, np.newaxis] + i).reshape(-1)


def in_lane_order(values: np.ndarray, vectors: int) -> np.ndarray:
    """(..., panels * vectors * 16) reordered within each panel."""
    panels = values.reshape(*values.shape[:-1], -1, vectors * LANES)
    return np.ascontiguousarray(panels[..., lane_order(vectors)]).reshape(values.shape)


@dataclass(frozen=True)
class Epilogue:
    """rule: one of matmul_parameters. start: int32 from which the sums of each channel start. factors: bytes."""

    rule: int
    start: np.ndarray
    factors: np.ndarray


class Panels:
    """The order of channels in (groups, panels) of `vectors` vectors, zeros beyond the last channel."""

    def __init__(self, channels: int, vectors: int, groups: int):
        self._groups, self._vectors, self._per_group = groups, vectors, channels // groups
        self._panels = -(-self._per_group // (vectors * LANES))

    def of(self, values: np.ndarray) -> np.ndarray:
        """(channels,) -> (groups, panels, vectors, 16)."""
        padded = np.zeros((self._groups, self._panels * self._vectors * LANES), values.dtype)
        padded[:, : self._per_group] = values.reshape(self._groups, self._per_group)
        return in_lane_order(padded, self._vectors).reshape(self._groups, self._panels, self._vectors, LANES)


def sums_factors(
    scaling: Requantization, bias: np.ndarray, products: np.ndarray, vectors: int, groups: int
) -> Epilogue | None:
    """For accumulators in memory, arguments as of `lane_factors`. None where no rule can be used."""
    panels = Panels(bias.size, vectors, groups)
    if scaling.rule == EXACT:
        factors = _exact_factors(scaling, np.abs(bias) + products, panels)
        return None if factors is None else Epilogue(EXACT, panels.of(bias.astype(np.int32)), factors)
    factors = _float64_factors(scaling, bias, products, panels)
    if factors is not None:
        rule = DOUBLE_BY_FLOAT64_POSITIVE if scaling.low >= scaling.output_zero else DOUBLE_BY_FLOAT64
        return Epilogue(rule, panels.of(bias.astype(np.int32)), factors)
    factors = lane_factors(scaling, bias, products, vectors, groups)
    return None if factors is None else Epilogue(scaling.rule, np.zeros_like(panels.of(bias), np.int32), factors)


def _float64_factors(
    scaling: Requantization, bias: np.ndarray, products: np.ndarray, panels: Panels
) -> np.ndarray | None:
    """TFLITE_DOUBLE with the first rounding by one multiply-add of float64, None where that could give something else.

    acc * multiplier has less than 62 bits, so that the multiply-add rounds it once, to the nearest integer. So does
    TFLITE_DOUBLE, but for ties, which go up there and to the even integer here: they are looked at one by one.
    """
    if scaling.rule != TFLITE_DOUBLE:
        return None
    multipliers, shifts = scaling.factors()
    largest, right = np.abs(bias) + products, _right_shifts(multipliers, shifts)
    if right is None or not _fits(scaling, multipliers, right, largest) or not _ties_agree(scaling, right, largest):
        return None
    parts = [
        panels.of(multipliers * 2.0**-31),
        panels.of(_addends(scaling, right).astype(np.int32)),
        panels.of(right.astype(np.int32)),
    ]
    return np.concatenate([part.view(np.uint8) for part in parts], axis=-1).reshape(-1)


def _ties_agree(scaling: Requantization, right: np.ndarray, largest: np.ndarray) -> bool:
    """Whether results are those of TFLITE_DOUBLE even where acc * multiplier is a whole number of 2^31 and a half.

    Such accumulators are the odd multiples of 2^30 / (the largest power of two in the multiplier).
    """
    multipliers, _ = scaling.factors()
    multipliers = multipliers.astype(np.int64)
    step = (1 << 30) // np.maximum(multipliers & -multipliers, 1)
    saturated = (SATURATED << (31 + right)) // np.maximum(multipliers, 1)  # from there on all results are bounds
    last = np.minimum(largest, saturated)
    for channel in np.flatnonzero((multipliers != 0) & (step <= last)):
        if last[channel] // (2 * step[channel]) > MOST_TIES:
            return False
        positive = np.arange(step[channel], last[channel] + 1, 2 * step[channel])
        acc = np.concatenate([-positive, positive])
        high = (acc * multipliers[channel] + (1 << 30)) >> 31
        high -= high & 1  # a tie went up to here; if that is odd, the even integer is the one below
        addend = _addends(scaling, right)[channel]
        if scaling.low < scaling.output_zero:
            addend = addend + (high >> 31)
        found = np.clip((high + addend) >> right[channel], scaling.low, scaling.high)
        real, bounds = scaling.multipliers[channel], (scaling.output_zero, scaling.low, scaling.high)
        if (found != fixedpoint.requantize(acc, real, *bounds, rule="TFLITE_DOUBLE")).any():
            return False
    return True


def _exact_factors(scaling: Requantization, largest: np.ndarray, panels: Panels) -> np.ndarray | None:
    """EXACT by one multiply-add of float64, None where that could give something else.

    EXACT rounds acc * multiplier to a float64, and that, ties away from zero, to an integer. With a multiplier two
    steps larger, ties (and what the first rounding makes one) are beyond the tie, and the nearest integer is the
    result, unless a product is so little below a tie that it would follow them: accumulators next to a tie are looked
    at. All others are further away from it than such steps reach.
    """
    multipliers = scaling.multipliers
    if not (multipliers > 0).all() or not (largest * np.maximum(multipliers, 1) < INT32 - SATURATED).all():
        return None
    ties = np.arange(scaling.low, scaling.high) + 0.5 - scaling.output_zero
    for start in range(0, multipliers.size, CHANNELS_AT_ONCE):
        some = multipliers[start : start + CHANNELS_AT_ONCE, np.newaxis]
        products = np.abs(np.rint(ties / some) * some)
        if ((products > np.abs(ties) * (1 - 2.0**-50)) & (products < np.abs(ties))).any():
            return None
    return panels.of(np.nextafter(np.nextafter(multipliers, np.inf), np.inf)).view(np.uint8).reshape(-1)


def _right_shifts(multipliers: np.ndarray, shifts: np.ndarray) -> np.ndarray | None:
    """int64, or None where some multiplier is too large or too small for rules of many channels at once."""
    right = np.where(multipliers == 0, 1, -shifts).astype(np.int64)
    return None if (right < 1).any() or (right > 30).any() else right


def _addends(scaling: Requantization, right: np.ndarray) -> np.ndarray:
    """Half of what the shift to the right drops, and the zero point."""
    return (1 << (right - 1)) + scaling.output_zero * (1 << right)


def _fits(scaling: Requantization, multipliers: np.ndarray, right: np.ndarray, largest: np.ndarray) -> bool:
    """Whether no number before the shift can be too large for int32."""
    high = largest * (multipliers / 2**31) + 2
    return not ((largest > INT32).any() or (high + np.abs(_addends(scaling, right)) > INT32).any())


def lane_factors(
    scaling: Requantization, bias: np.ndarray, products: np.ndarray, vectors: int, groups: int = 1
) -> np.ndarray | None:
    """The factors of (groups, panels) of `vectors` vectors as bytes, or None where a rule cannot be used.

    bias: int64 (channels,), added to the sums of products. products: (channels,) bounds of those sums' magnitudes.
    A rule is used where no number can be too large for it: that is proven here, so that kernels need not look.
    """
    multipliers, shifts = scaling.factors()
    largest = np.abs(bias) + products
    if (largest > INT32).any():
        return None
    vectors_of = Panels(multipliers.size, vectors, groups).of
    if scaling.rule == FP32_ROUND_EVEN:
        if (largest * scaling.multipliers >= LARGEST_ROUNDED).any():
            return None
        parts = [vectors_of(multipliers), vectors_of(bias.astype(np.int32))]
    elif scaling.rule == TFLITE_DOUBLE:
        right = _right_shifts(multipliers, shifts)
        if right is None or not _fits(scaling, multipliers, right, largest):
            return None
        nudges = vectors_of(bias * multipliers.astype(np.int64) + (1 << 30))
        parts = [
            vectors_of(multipliers),
            vectors_of(_addends(scaling, right).astype(np.int32)),
            vectors_of(right.astype(np.int32)),
            np.ascontiguousarray(nudges[..., 0::2]),
            2 * nudges[..., 1::2],
        ]
    else:
        return None
    return np.concatenate([part.view(np.uint8) for part in parts], axis=-1).reshape(-1)
