"""Codebooks for weights: few values that stand for many, by k-means on a line.

In one dimension the members of a cluster are an interval of the sorted weights, so that a pass of Lloyd's algorithm
takes one binary search per cluster. Zeros are left out: they stay zeros, and do not count.
"""

from collections.abc import Callable

import numpy as np

from schema.errors import InputError

PASSES = 100
"""Lloyd's algorithm ends after that many passes, or when nothing changes."""


def codebook(weights: np.ndarray, clusters: int, init: str = "kmeans++", seed: int = 0) -> np.ndarray:
    """Values that stand for weights with small squared error.

    Args:
        weights: float array of any shape.
        clusters: the most values that there may be, 1 or more.
        init: where k-means begins: "kmeans++", "linear" (evenly between the extremes; Deep Compression, Han et al.
            2016, arXiv:1510.00149, found it best after pruning, since it has values for rare large weights) or
            "density" (as many weights to each).
        seed: of "kmeans++".

    Returns:
        float32, ascending, at most `clusters` values, none of them 0. Where the weights have no more distinct values
        than that, these.
    """
    ordered = np.sort(weights[(weights != 0) & np.isfinite(weights)].astype(np.float64), axis=None)
    first = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if ordered.size else ordered
    if first.size <= clusters:
        return first.astype(np.float32)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    centers = np.unique(start_of(init)(ordered, clusters, np.random.default_rng(seed)))
    for _ in range(PASSES):
        borders = np.searchsorted(ordered, (centers[1:] + centers[:-1]) / 2)
        ends = np.concatenate(([0], borders, [ordered.size]))
        counts = np.diff(ends)
        means = np.diff(sums[ends])[counts > 0] / counts[counts > 0]
        if np.array_equal(means, centers):
            break
        centers = means
    found = np.unique(centers.astype(np.float32))
    return found[found != 0]


def nearest(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Which value of a codebook is nearest to each weight.

    Args:
        weights: float array of any shape.
        values: float32, ascending, not empty.

    Returns:
        int32 indices of the weights' shape.
    """
    return np.searchsorted((values[1:] + values[:-1]) / 2, weights).astype(np.int32)


def start_of(init: str) -> Callable[[np.ndarray, int, np.random.Generator], np.ndarray]:
    """The function that places the first centers.

    Raises:
        InputError: there is none of that name.
    """
    if init not in _STARTS:
        raise InputError(f"init={init!r}: give one of {', '.join(map(repr, _STARTS))}")
    return _STARTS[init]


def _linear(ordered: np.ndarray, clusters: int, random: np.random.Generator) -> np.ndarray:
    return np.linspace(ordered[0], ordered[-1], clusters)


def _density(ordered: np.ndarray, clusters: int, random: np.random.Generator) -> np.ndarray:
    return ordered[((np.arange(clusters) + 0.5) * ordered.size / clusters).astype(np.int64)]


def _plus_plus(ordered: np.ndarray, clusters: int, random: np.random.Generator) -> np.ndarray:
    """Each center is drawn with the squared distance to those before it (Arthur and Vassilvitskii 2007)."""
    centers = [ordered[random.integers(ordered.size)]]
    distance = (ordered - centers[0]) ** 2
    for _ in range(clusters - 1):
        sums = np.cumsum(distance)
        if sums[-1] == 0:
            break
        centers.append(ordered[min(np.searchsorted(sums, random.random() * sums[-1]), ordered.size - 1)])
        distance = np.minimum(distance, (ordered - centers[-1]) ** 2)
    return np.array(centers)


_STARTS = {"kmeans++": _plus_plus, "linear": _linear, "density": _density}
