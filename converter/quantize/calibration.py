"""Calibration data: what users pass in, as checked batches in the order of the graph's inputs.

What is taken:
- an array (anything numpy can view as one that has a shape): samples on axis 0, for a graph of one input;
- a mapping from input name to such arrays, all with the same number of samples. The names `numpy.savez` gives to
  unnamed arrays (`arr_0`, `arr_1`, ...) stand for the inputs in order;
- any other iterable, such as a list, a generator or a `tf.data.Dataset`: it yields batches. A batch is an array (one
  input), a mapping by name, a list or tuple of one array for each input in order, or, as `fit` takes them, a tuple
  (x, y) or (x, y, sample_weight) of which only x is used.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schema.errors import CalibrationError
from schema.graph import Graph, Shape, Tensor

Batch = list[np.ndarray]


def load(path: str | os.PathLike) -> np.ndarray | dict[str, np.ndarray]:
    """The samples in a `.npy` file (an array) or a `.npz` file (arrays by name). Raises CalibrationError."""
    path = Path(path)
    if path.suffix not in (".npy", ".npz"):
        raise CalibrationError(f"calibration file {path}: a .npy or .npz file is needed (numpy.save, numpy.savez)")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise CalibrationError(f"calibration file {path} does not exist") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CalibrationError(
            f"calibration file {path} cannot be read: {error}; save plain arrays with numpy.save or numpy.savez"
        ) from None


class Batches:
    """Checked batches for a graph. Iterating once gives each batch as arrays in the order of `graph.inputs`.

    samples: how many, None where only iterating tells. batch_size: how many samples of arrays form a batch; an input
    with a fixed batch axis sets it instead, and samples that do not fill the last batch are then left out. Iterables
    keep their own batches.
    """

    def __init__(self, graph: Graph, calibration: Any, batch_size: int):
        self._graph = graph
        self.samples: int | None = None
        self._cut_up: list[Batch] | None = None
        self._iterable: Iterable[Any] = ()
        if calibration is None:
            raise CalibrationError(
                f"int8 needs calibration data: some typical values of {_signature(graph)} (--calibration FILE)"
            )
        if isinstance(calibration, str | bytes | os.PathLike):
            raise CalibrationError(f"calibration is {calibration!r}: load it with converter.quantize.load(path)")
        if isinstance(calibration, Mapping) or _is_array(calibration):
            self._cut_up = self._cut(self._arrays(calibration, "calibration data"), batch_size)
            self.samples = sum(len(batch[0]) for batch in self._cut_up)
        elif isinstance(calibration, Iterable):
            self._iterable = calibration
        else:
            raise CalibrationError(
                f"calibration is {_type(calibration)}: an array, a dict of arrays or an iterable of batches is needed"
            )

    def __iter__(self) -> Iterator[Batch]:
        if self._cut_up is not None:
            yield from self._cut_up
            return
        index = -1
        for index, value in enumerate(self._iterable):
            where = f"calibration batch {index}"
            yield self._check(self._arrays(value, where), [tensor.shape for tensor in self._graph.inputs], where)
        if index < 0:
            raise CalibrationError(
                "the calibration data yields no batches: it is empty, or an iterator that was used up before"
            )

    def _cut(self, arrays: list[np.ndarray], batch_size: int) -> list[Batch]:
        """Arrays of samples as batches."""
        shapes = [tensor.shape for tensor in self._graph.inputs]
        if () in shapes or any(array.ndim == 0 for array in arrays):
            raise CalibrationError(
                f"{_signature(self._graph)}: a single number has no samples; pass an iterable of batches"
            )
        arrays = self._check(arrays, [(None, *shape[1:]) if shape else shape for shape in shapes], "calibration data")
        counts = {name: len(array) for name, array in zip(self._graph.input_names, arrays, strict=True)}
        samples = min(counts.values())
        if samples != max(counts.values()):
            raise CalibrationError(f"calibration data has a different number of samples for each input: {counts}")
        fixed = {shape[0] for shape in shapes if shape and shape[0] is not None}
        if len(fixed) > 1:
            raise CalibrationError(f"{_signature(self._graph)} have no common batch axis: pass an iterable of batches")
        size = next(iter(fixed), batch_size)
        if fixed and samples < size:
            raise CalibrationError(
                f"calibration data has {samples} samples, fewer than the {size} that {_signature(self._graph)} "
                "takes at once"
            )
        whole = samples - samples % size if fixed else samples
        return [[array[start : start + size] for array in arrays] for start in range(0, whole, size)]

    def _check(self, arrays: list[np.ndarray], shapes: Sequence[Shape | None], where: str) -> Batch:
        inputs = zip(self._graph.input_names, self._graph.inputs, arrays, shapes, strict=True)
        return [_check(name, tensor, array, shape, where) for name, tensor, array, shape in inputs]

    def _arrays(self, value: Any, where: str) -> list[np.ndarray]:
        """One batch in the order of the inputs, unchecked."""
        count = len(self._graph.inputs)
        if isinstance(value, Mapping):
            return self._by_name(value, where)
        if _is_array(value):
            if count != 1:
                raise CalibrationError(
                    f"{where} is one array, but the model takes {_signature(self._graph)}: pass a dict"
                )
            return [np.asarray(value)]
        if isinstance(value, list | tuple):
            if len(value) == count and all(_is_array(v) for v in value):
                return [np.asarray(v) for v in value]
            if isinstance(value, tuple) and len(value) in (2, 3):
                return self._arrays(value[0], where)
            raise CalibrationError(
                f"{where} is a {_type(value)} of {len(value)}, but the model takes {_signature(self._graph)}: "
                "one array for each input is needed"
            )
        raise CalibrationError(f"{where} is {_type(value)}: an array, a dict or a tuple of arrays is needed")

    def _by_name(self, value: Mapping[Any, Any], where: str) -> list[np.ndarray]:
        names = self._graph.input_names
        unnamed = [f"arr_{i}" for i in range(len(names))]  # numpy.savez's
        if set(value) == set(unnamed) and not set(unnamed) & set(names):
            names = unnamed
        unknown = [str(name) for name in value if name not in names]
        missing = [name for name in names if name not in value]
        if unknown or missing:
            wrong = [f"no input is called {', '.join(map(repr, unknown))}"] if unknown else []
            wrong += [f"{', '.join(map(repr, missing))} is missing"] if missing else []
            raise CalibrationError(f"{where}: {'; '.join(wrong)}; the model takes {_signature(self._graph)}")
        return [np.asarray(value[name]) for name in names]


def _check(name: str, tensor: Tensor, array: np.ndarray, shape: Shape | None, where: str) -> np.ndarray:
    """The array in the input's dtype. Raises CalibrationError for another shape or kind of number, NaN and infinity."""
    expected = f"{where} for {_describe(name, tensor)}"
    if shape is not None:
        fits = array.ndim == len(shape) and all(d in (None, n) for d, n in zip(shape, array.shape, strict=True))
        if not fits:
            raise CalibrationError(
                f"{expected} has shape {array.shape}; axis 0 counts the samples, the rest must be the input's"
            )
    if array.size == 0:
        raise CalibrationError(f"{expected} is empty: shape {array.shape}")
    if array.dtype != tensor.dtype:
        kinds = "iu" if tensor.dtype.kind in "iu" else tensor.dtype.kind
        if array.dtype.kind not in kinds:
            raise CalibrationError(
                f"{expected} is {array.dtype}: if those are the values the model takes, pass x.astype('{tensor.dtype}')"
            )
        with np.errstate(over="ignore"):  # what overflows becomes infinite, and is refused as such
            cast = array.astype(tensor.dtype)
        if tensor.dtype.kind in "iu" and not np.array_equal(cast, array):
            raise CalibrationError(f"{expected} has {array.dtype} values that {tensor.dtype} does not hold")
        array = cast
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = "NaN" if np.isnan(array).any() else "infinite values"
        raise CalibrationError(f"{expected} has {bad}: remove those samples")
    return np.ascontiguousarray(array)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "shape"))


def _type(value: Any) -> str:
    return type(value).__name__


def _describe(name: str, tensor: Tensor) -> str:
    shape = "?" if tensor.shape is None else ", ".join("?" if d is None else str(d) for d in tensor.shape)
    return f"input '{name}' ({tensor.dtype}, shape ({shape}))"


def _signature(graph: Graph) -> str:
    return ", ".join(_describe(n, t) for n, t in zip(graph.input_names, graph.inputs, strict=True))
