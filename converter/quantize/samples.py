"""Calibration data that is held, for what has to see it more than once, and cut in halves to fit and to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from converter.quantize.calibration import Batch, Batches
from converter.quantize.observation import batch_size
from schema.graph import Graph

FEWEST_TO_SPLIT = 16  # samples; each half has to say something by itself


def hold(graph: Graph, calibration: Any) -> list[Batch]:
    """All batches. Shapes have to be annotated. Raises CalibrationError for data that does not fit the inputs."""
    return list(Batches(graph, calibration, batch_size(graph, [t for t in graph.tensors() if not t.is_constant])))


def count(batches: Sequence[Batch]) -> int:
    """How many samples there are, an input without axes being one."""
    return sum(batch[0].shape[0] if batch and batch[0].ndim else 1 for batch in batches)


def first(batches: Sequence[Batch], samples: int) -> list[Batch]:
    """The first batches with at most so many samples together, but one batch at least."""
    taken = 1
    while taken < len(batches) and count(batches[: taken + 1]) <= samples:
        taken += 1
    return list(batches[:taken])


def halves(graph: Graph, batches: list[Batch]) -> tuple[list[Batch], list[Batch]]:
    """(what to fit, what to judge by), every other sample each, or every other batch where one cannot be cut up.

    Where there are few samples, both are all of them.
    """
    if count(batches) < FEWEST_TO_SPLIT:
        return batches, batches
    parts = [batches[::2], batches[1::2]]
    if _can_be_cut(graph, batches):
        parts = [[[array[i::2] for array in batch] for batch in batches if len(batch[0]) > i] for i in (0, 1)]
    return (parts[0], parts[1]) if all(parts) else (batches, batches)


def _can_be_cut(graph: Graph, batches: Sequence[Batch]) -> bool:
    free = all(tensor.shape and tensor.shape[0] is None for tensor in graph.inputs)
    lengths = [{len(array) for array in batch} for batch in batches] if free else []
    return any(lengths) and all(len(found) == 1 for found in lengths) and set.union(*lengths) != {1}
