"""What the report measures: latency, and how weights are distributed."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import runtime
from schema.ledger import Ledger
from xnn_tf.compression.report.layer_names import layer_of

BINS = 41
_RUNS, _SECONDS = 50, 1.0  # of a measurement, whichever comes first


def latency_ms(xnn: bytes, x: Any, threads: int = 1) -> float:
    """Median milliseconds of one call for one sample, on this machine as busy as it is."""
    model = runtime.load(xnn, threads=threads)
    arguments = tuple(x.values()) if isinstance(x, dict) else x if isinstance(x, tuple) else (x,)
    one = tuple(np.ascontiguousarray(array[:1]) for array in arguments)
    for _ in range(3):
        model(*one)
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < _RUNS and (time.perf_counter() - begun < _SECONDS or not times):
        start = time.perf_counter()
        model(*one)
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def histogram(before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """Counts of both in the same bins; zeros of the second apart.

    Returns:
        `limit`: bins go from -limit to limit. `before`, `after`: counts. `zeros`: of `after`, not in its bins.
    """
    limit = float(max(np.abs(before).max(initial=0), np.abs(after).max(initial=0))) or 1.0
    kept = after[after != 0]
    return {
        "limit": limit,
        "before": np.histogram(before, BINS, (-limit, limit))[0].tolist(),
        "after": np.histogram(kept, BINS, (-limit, limit))[0].tolist(),
        "zeros": int(after.size - kept.size),
    }


def by_step(
    base: dict[str, list[np.ndarray]], model: dict[str, list[np.ndarray]], book: Ledger
) -> list[dict[str, Any]]:
    """Bytes of each layer after each of the five steps.

    `float32`: four bytes for each parameter of the base model. `neurons`: likewise of the compressed one. `synapses`:
    four bytes for each weight that is not zero and a bit for each position, where that is less. `quantization`: of
    those, the bits that tell the different numbers of the file's weights apart, and these numbers. `transform`: the
    same for the weights that are in the file, BatchNorm folded. `coding`: the file's bytes.

    Args:
        base, model: weights of each Keras layer, by its path.
        book: of the file.
    """
    in_file = {layer.layer: layer for layer in book.layers}
    owners = {name: layer_of(name, list(base)) for name in in_file}
    rows: list[dict[str, Any]] = []
    for path, weights in base.items():
        mine = [layer for name, layer in in_file.items() if owners[name] == path]
        now = model.get(path, [])
        bits = max((_bits(layer.distinct) for layer in mine), default=32)
        rows.append(
            {
                "layer": path,
                "float32": 4 * sum(w.size for w in weights),
                "neurons": 4 * sum(w.size for w in now),
                "synapses": sum(_stored(w, 32) for w in now),
                "quantization": sum(_stored(w, bits if w.ndim > 1 else 32) for w in now),
                "transform": sum(
                    _sparse(f.weights, f.weights - f.zeros, _bits(f.distinct)) + 4 * f.distinct * (f.distinct <= 256)
                    for f in mine
                ),
                "coding": sum(layer.total for layer in mine),
            }
        )
    other = [layer for name, layer in in_file.items() if owners[name] is None]
    if other:
        rows.append({"layer": "(other)"} | dict.fromkeys(("float32", "neurons", "synapses", "quantization"), 0))
        rows[-1] |= {"transform": sum(4 * o.weights for o in other), "coding": sum(o.total for o in other)}
    header = dict.fromkeys(("float32", "neurons", "synapses", "quantization", "transform"), 0)
    rows.append({"layer": "(header)"} | header | {"coding": book.header})
    return rows


def _stored(weight: np.ndarray, bits: int) -> int:
    return _sparse(weight.size, int(np.count_nonzero(weight)), bits)


def _sparse(count: int, nonzeros: int, bits: int) -> int:
    dense, sparse = count * bits, nonzeros * bits + count
    return math.ceil(min(dense, sparse) / 8)


def _bits(distinct: int) -> int:
    return 32 if distinct > 256 else max(1, math.ceil(math.log2(distinct + 1)))
