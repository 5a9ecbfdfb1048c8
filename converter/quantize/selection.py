"""Keeping the changes that help, as measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Change = TypeVar("Change")
HELPS = 0.25  # dB that a set of changes has to gain to be kept
TRIALS = 12  # measurements at most


@dataclass(frozen=True)
class Chosen(Generic[Change]):
    """kept: in the order in which they were given. before, after: SNR in dB without and with them. together: with all
    changes that there were.
    """

    kept: list[Change]
    before: float
    after: float
    together: float

    @property
    def gain(self) -> float:
        return self.after - self.before if self.kept else 0.0


def choose(changes: Sequence[Change], measure: Callable[[Sequence[Change]], float]) -> Chosen[Change]:
    """measure: SNR in dB with these changes, any part of all in their order.

    All are tried, and where they do not help together each half of them, and so on. What is kept helped when it was
    added to what was kept before it.
    """
    before = measure([])
    kept: list[int] = []
    after = together = before
    trials = 0
    waiting = [list(range(len(changes)))] if changes else []
    while waiting and trials < TRIALS:
        part = waiting.pop(0)
        tried = sorted([*kept, *part])
        found = measure([changes[i] for i in tried])
        trials += 1
        if trials == 1:
            together = found
        if found >= after + HELPS:
            kept, after = tried, found
        elif len(part) > 1:
            waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
    return Chosen([changes[i] for i in kept], before, after, together)
