"""Keeping the changes that help, as measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from converter.quantize.measure import Noise

Change = TypeVar("Change")
HELPS = 0.5  # dB that a set of changes has to gain to be kept: less comes from rounding other weights otherwise
CERTAIN = 2.0  # and standard errors of that gain
TRIALS = 7  # measurements at most: all, each half, each quarter


@dataclass(frozen=True)
class Chosen(Generic[Change]):
    """kept: in the order in which they were given. before, after: without and with them. together: with all changes
    that there were.
    """

    kept: list[Change]
    before: Noise
    after: Noise
    together: Noise


def choose(changes: Sequence[Change], measure: Callable[[Sequence[Change]], Noise]) -> Chosen[Change]:
    """measure: noise with these changes, any part of all in their order.

    All are tried, and where they do not help together each half of them, and so on. What is kept helped when it was
    added to what was kept before it.
    """
    before = measure([])
    kept: list[int] = []
    measured: list[Noise] = []
    after = before
    waiting = [list(range(len(changes)))] if changes else []
    while waiting and len(measured) < TRIALS:
        part = waiting.pop(0)
        tried = sorted([*kept, *part])
        measured.append(measure([changes[i] for i in tried]))
        gain, error = measured[-1].gain_over(after)
        if gain >= max(HELPS, CERTAIN * error):
            kept, after = tried, measured[-1]
        elif len(part) > 1:
            waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
    return Chosen([changes[i] for i in kept], before, after, measured[0] if measured else before)
