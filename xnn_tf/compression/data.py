"""The forms in which training and validation data come, behind one face."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from schema.errors import InputError

_FORMS = "give arrays (x, y), a batched tf.data.Dataset of (x, y), or a keras PyDataset or Sequence"


class Data:
    """Batches of inputs and targets.

    Attributes:
        batch_size: of arrays; datasets have their own.
    """

    def __init__(self, source: Any, argument: str, batch_size: int = 128) -> None:
        """Takes data as `fit` does.

        Args:
            source: (x, y) of arrays (x may be a dict or list of arrays), a `tf.data.Dataset` of batches, or a keras
                PyDataset or Sequence. A third part, sample weights, is used in training.
            argument: how messages call it.
            batch_size: for arrays.

        Raises:
            InputError: it is something else, or x and y differ in length.
        """
        self.batch_size = batch_size
        self._source = source
        self._arrays = isinstance(source, (tuple, list))
        if self._arrays:
            if len(source) not in (2, 3):
                raise InputError(f"{argument} is a {type(source).__name__} of {len(source)}: {_FORMS}")
            counts = {len(array) for array in _leaves((source[0], source[1]))}
            if len(counts) != 1 or 0 in counts:
                raise InputError(f"{argument}: x and y have {sorted(counts)} samples; they need equally many")
            self._count = counts.pop()
        elif not (hasattr(source, "element_spec") or (hasattr(source, "__getitem__") and hasattr(source, "__len__"))):
            raise InputError(f"{argument} is a {type(source).__name__}: {_FORMS}")

    @property
    def steps(self) -> int | None:
        """Batches of an epoch; None for a dataset that does not know."""
        if self._arrays:
            return -(-self._count // self.batch_size)
        if hasattr(self._source, "cardinality"):
            count = int(self._source.cardinality())
            return count if count > 0 else None
        return len(self._source)

    def fit_arguments(self) -> dict[str, Any]:
        """What `fit` takes."""
        if not self._arrays:
            return {"x": self._source}
        x, y, *weights = self._source
        arguments = {"x": x, "y": y, "batch_size": self.batch_size}
        return arguments | ({"sample_weight": weights[0]} if weights else {})

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """One epoch of (x, y) as numpy arrays, or dicts and tuples of them; in order."""
        if self._arrays:
            x, y = self._source[0], self._source[1]
            for start in range(0, self._count, self.batch_size):
                part = slice(start, start + self.batch_size)
                yield (
                    _map(lambda a, part=part: np.asarray(a[part]), x),
                    _map(lambda a, part=part: np.asarray(a[part]), y),
                )
            return
        batches = self._source if hasattr(self._source, "element_spec") else _items(self._source)
        for batch in batches:
            yield _map(np.asarray, batch[0]), _map(np.asarray, batch[1])

    def inputs(self, samples: int) -> list[Any]:
        """The inputs of the first batches that hold as many samples, for calibration."""
        found, taken = 0, []
        for x, _ in self.batches():
            taken.append(x)
            found += len(_leaves(x)[0])
            if found >= samples:
                break
        return taken

    def first(self) -> tuple[Any, Any]:
        """The first batch."""
        return next(iter(self.batches()))

    def head(self, batches: int) -> list[tuple[Any, Any]]:
        """The first batches."""
        return list(itertools.islice(self.batches(), batches))


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence[index] for index in range(len(sequence)))


def _leaves(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return [leaf for value in structure.values() for leaf in _leaves(value)]
    if isinstance(structure, (tuple, list)):
        return [leaf for value in structure for leaf in _leaves(value)]
    return [structure]


def _map(function: Any, structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _map(function, value) for key, value in structure.items()}
    if isinstance(structure, (tuple, list)):
        return tuple(_map(function, value) for value in structure)
    return function(structure)
