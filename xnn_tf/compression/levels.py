"""How far to compress next: a search over the bytes that a level aims at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xnn_tf.compression.goal import Goal
from xnn_tf.compression.recipe import Recipe

_CLOSE = 1.08  # bounds that are nearer than this factor are not worth another level
_MARGIN = 0.99  # of a size, what is aimed at
_LOOSE = 0.88  # a file below this share of the size that it may have wastes accuracy


@dataclass(frozen=True)
class Level:
    """A level that has been run.

    Attributes:
        target: bytes that it aimed at.
        bytes: of its best file.
        met: whether that file met the goal.
    """

    target: float
    bytes: int
    met: bool


def next_level(goal: Goal, recipe: Recipe, done: Sequence[Level]) -> tuple[float, int | None] | None:
    """What to aim at after these levels, and from which of them to start.

    Returns:
        (bytes, index of the level whose weights to go on from, or None for the base model's); None when it is enough.
    """
    if len(done) >= recipe.levels or not recipe.stages:
        return None
    if goal.target_bytes is not None:
        return _toward_size(goal.target_bytes, done)
    if not done:
        return goal.base_bytes / recipe.first_ratio, None
    met = [i for i, level in enumerate(done) if level.met]
    failed = [level.target for level in done if not level.met]
    if not met:
        easier = max(failed) * recipe.stride**2
        return (easier, None) if easier < goal.base_bytes / 2 else None
    start = min(met, key=lambda i: done[i].target)
    reached = done[start].target
    harder = [target for target in failed if target < reached]
    if not harder:
        return reached / recipe.stride, start
    bound = max(harder)
    return (math.sqrt(reached * bound), start) if reached / bound > _CLOSE else None


def _toward_size(size: int, done: Sequence[Level]) -> tuple[float, int | None] | None:
    if not done:
        return size * _MARGIN, None
    last = done[-1]
    again = last.target * size / last.bytes * _MARGIN
    if last.met:
        # Less compression can only be had from the base's weights: zeros do not come back.
        return (again, None) if last.bytes < _LOOSE * size else None
    return again, len(done) - 1
