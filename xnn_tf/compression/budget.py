"""How many epochs a level may train, so that all ends in time."""

from collections.abc import Sequence

from xnn_tf.compression.stages.base import Stage
from xnn_tf.compression.state import Step

_EXPECTED = 3  # levels that are kept room for, where more may come


def epochs_of_level(
    epochs: int, levels_left: int, steps: Sequence[Step], seconds_per_epoch: float, budget_seconds: float | None
) -> int:
    """Epochs of the next level, 0 where the time is over.

    Args:
        epochs: wanted.
        levels_left: that may still come, this one among them.
        steps: finished ones; what they took is gone, and what is not training comes again with each level.
        seconds_per_epoch: measured.
        budget_seconds: for all; None for as long as it takes.
    """
    if budget_seconds is None:
        return epochs
    left = budget_seconds - sum(step.seconds for step in steps)
    per_level = _besides_training(steps)
    room = left / min(levels_left, _EXPECTED) - per_level
    return max(0, min(epochs, int(room / max(seconds_per_epoch, 1e-9))))


def _besides_training(steps: Sequence[Step]) -> float:
    """Seconds of a level that are not training: converting and measuring."""
    others = [step.seconds - step.values.get("seconds", 0.0) for step in steps if step.name.startswith("level")]
    levels = {step.name.split("/")[0] for step in steps if step.name.startswith("level")}
    if levels:
        return sum(others) / len(levels)
    return sum(step.seconds for step in steps if step.name.startswith("base"))


def seconds_per_epoch(steps: Sequence[Step]) -> float | None:
    """As measured in the training so far, the probe's first; None where there was none."""
    trained = [step.values for step in steps if step.values.get("epochs") and "seconds" in step.values]
    if len(trained) > 1:
        trained = [values for values in trained if not values.get("probe")]
    epochs = sum(values["epochs"] for values in trained)
    return sum(values["seconds"] for values in trained) / epochs if epochs else None


def share_out(epochs: int, stages: Sequence[Stage]) -> list[int]:
    """A level's epochs, by the stages' shares: one at least for each that trains."""
    total = sum(stage.share for stage in stages)
    if total == 0:
        return [0] * len(stages)
    counts = [max(1, int(epochs * stage.share / total)) if stage.share else 0 for stage in stages]
    spare = epochs - sum(counts)
    trains = [index for index, stage in enumerate(stages) if stage.share]
    for index in sorted(trains, key=lambda i: -stages[i].share) * max(0, spare):
        if spare <= 0:
            break
        counts[index] += 1
        spare -= 1
    return counts
