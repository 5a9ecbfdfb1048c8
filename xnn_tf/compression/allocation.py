"""How sparse each layer becomes, so that all together take a given number of bytes.

A rule is a family of allotments with one parameter t from 0 (nothing pruned) to 1 (nearly everything); `allot` finds
the t whose coded bytes are those asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from xnn_tf.compression.coded_size import coded_bytes_of, quantized
from xnn_tf.lamp_ranking import LampRanking
from xnn_tf.pruning_pattern import smallest

Rule = Literal["uniform", "std", "lamp", "sensitivity"]
Weights = Mapping[str, np.ndarray]
Sparsities = dict[str, float]
Curve = Sequence[tuple[float, float]]
"""(sparsity, damage): what pruning one layer so far costs; see `stages.sensitivity`."""

MOST = 0.995
"""The sparsity that no layer is taken beyond."""
LARGEST_QUALITY = 6.0
"""Of the rule "std": standard deviations below which weights are pruned, at t = 1."""
_STEPS = 14  # of a bisection


def uniform(weights: Weights, t: float) -> Sparsities:
    """The same share of each layer."""
    return dict.fromkeys(weights, MOST * t)


def std(weights: Weights, t: float) -> Sparsities:
    """Weights below a threshold of so many standard deviations of their layer (Han et al. 2015, arXiv:1506.02626)."""
    quality = LARGEST_QUALITY * t
    return {name: min(MOST, float(np.mean(np.abs(w) < quality * _deviation(w)))) for name, w in weights.items()}


def _deviation(weight: np.ndarray) -> float:
    """Of the weights that are not pruned already."""
    kept = weight[weight != 0]
    return float(np.sqrt(np.mean(np.square(kept)))) if kept.size else 0.0


def lamp(weights: Weights, t: float) -> Sparsities:
    """The share t of all weights: those that `xnn_tf.lamp_ranking` puts first."""
    ranking = LampRanking(list(weights.values()))
    counts = ranking.counts(round(MOST * t * ranking.size))
    return {name: min(MOST, count / w.size) for (name, w), count in zip(weights.items(), counts, strict=True)}


def sensitivity(curves: Mapping[str, Curve], rates: Mapping[str, Sequence[int]], price: float) -> Sparsities:
    """For each layer the point of its curve with the least damage + price · bytes.

    At each price the bytes are spent where they are cheapest (Shoham and Gersho 1988, on bit allocation).

    Args:
        curves: for each layer, (sparsity, damage) at growing sparsities.
        rates: for each layer, coded bytes at the same sparsities.
        price: damage that a byte is worth.
    """
    chosen = {}
    for name, curve in curves.items():
        costs = [damage + price * size for (_, damage), size in zip(curve, rates[name], strict=True)]
        chosen[name] = curve[int(np.argmin(costs))][0]
    return chosen


def pruned(weight: np.ndarray, sparsity: float) -> np.ndarray:
    """The weight with that share of zeros, those of least magnitude."""
    return np.where(smallest(np.abs(weight), round(sparsity * weight.size)), np.float32(0), weight)


def coded(weight: np.ndarray, sparsity: float, levels: int) -> int:
    """Bytes of a weight once it is pruned and has so many values."""
    return coded_bytes_of(quantized(pruned(weight, sparsity), levels))


def allot(
    weights: Weights,
    rule: Rule,
    target_bytes: float,
    levels: Mapping[str, int],
    curves: Mapping[str, Curve] | None = None,
) -> Sparsities:
    """Sparsities at which the weights take `target_bytes`, or as near as the rule comes.

    Args:
        weights: by kernel name.
        rule: how they are shared out.
        target_bytes: of all these weights, coded.
        levels: distinct values that each will have.
        curves: for the rule "sensitivity".
    """

    def size(sparsities: Sparsities) -> int:
        return sum(coded(w, sparsities[name], levels[name]) for name, w in weights.items())

    if rule == "sensitivity" and curves:
        rates = {n: [coded(weights[n], s, levels[n]) for s, _ in curve] for n, curve in curves.items()}
        more, fewer = _bisect(lambda t: sensitivity(curves, rates, _price(curves, t)), size, target_bytes)
        # Curves have few points: between two allotments, all layers go the same share of the way.
        return _bisect(lambda t: {n: s + t * (fewer[n] - s) for n, s in more.items()}, size, target_bytes)[1]
    families: dict[str, Callable[[Weights, float], Sparsities]] = {"uniform": uniform, "std": std, "lamp": lamp}
    return _bisect(lambda t: families[rule](weights, t), size, target_bytes)[1]


def _price(curves: Mapping[str, Curve], t: float) -> float:
    """Prices from nothing to more than any damage, by a logarithmic scale."""
    worst = max((damage for curve in curves.values() for _, damage in curve), default=1.0)
    return 0.0 if t <= 0 else max(worst, 1e-6) * 10.0 ** (10 * t - 10)


def _bisect(
    family: Callable[[float], Sparsities], size: Callable[[Sparsities], int], target: float
) -> tuple[Sparsities, Sparsities]:
    """Two members of a family near each other: one that takes more than the target (or the first), one that does not
    (or the last)."""
    low, high = 0.0, 1.0
    if size(family(low)) <= target:
        return family(low), family(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if size(family(middle)) > target:
            low = middle
        else:
            high = middle
    return family(low), family(high)
