"""What a compression is to reach, and which of several files reaches it best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from schema.errors import InputError


class Measured(Protocol):
    """A file: its bytes, and its score on the validation data."""

    @property
    def bytes(self) -> int: ...
    @property
    def score(self) -> float: ...


@dataclass(frozen=True)
class Goal:
    """Either the score that may be lost, or the bytes that may be taken.

    Attributes:
        base_bytes: the base model's parameters as float32.
        base_score: of the base model on the validation data.
        max_drop: how far below the base's the score may be; None where the size is given.
        target_bytes: how large the file may be; None where the drop is given.
    """

    base_bytes: int
    base_score: float
    max_drop: float | None
    target_bytes: int | None

    @property
    def least_score(self) -> float | None:
        return None if self.max_drop is None else self.base_score - self.max_drop

    def met(self, candidate: Measured) -> bool:
        """Whether a file meets it."""
        if self.target_bytes is not None:
            return candidate.bytes <= self.target_bytes
        assert self.least_score is not None
        return candidate.score >= self.least_score - 1e-9

    def best(self, candidates: Sequence[Measured]) -> int:
        """The index of the best: of those that meet it, the smallest (or, for a size, of the highest score).

        Where none does, the one that comes nearest.
        """
        indices = range(len(candidates))
        meeting = [i for i in indices if self.met(candidates[i])]
        if self.target_bytes is not None:
            if meeting:
                return max(meeting, key=lambda i: (candidates[i].score, -candidates[i].bytes))
            return min(indices, key=lambda i: candidates[i].bytes)
        if meeting:
            return min(meeting, key=lambda i: (candidates[i].bytes, -candidates[i].score))
        return max(indices, key=lambda i: (candidates[i].score, -candidates[i].bytes))


def check_goal(max_drop: float | None, target_size: int | None, target_ratio: float | None) -> None:
    """Raises InputError where the arguments of `compress` say no goal, or more than one."""
    if sum(argument is not None for argument in (max_drop, target_size, target_ratio)) > 1:
        raise InputError("give one goal: max_drop, target_size or target_ratio")
    if target_size is not None and not (isinstance(target_size, int) and target_size > 0):
        raise InputError(f"target_size={target_size!r}: give the bytes of the file, a whole number above 0")
    if target_ratio is not None and not float(target_ratio) > 1:
        raise InputError(f"target_ratio={target_ratio!r}: give how many times smaller the file shall be, more than 1")
    if max_drop is not None and not 0 <= float(max_drop) < 1:
        raise InputError(f"max_drop={max_drop!r}: give the score that may be lost, from 0.0 up to 1.0")
