"""How much loss it costs to prune each kernel: measured, so that layers that mind little are pruned most."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.keras_compat import float32_values
from xnn_tf.kernels import Kernel, as_they_were, find_kernels
from xnn_tf.layer_patterns import Patterns, select
from xnn_tf.pruning_pattern import ElementPattern, PruningPattern

SHARES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""At which each kernel is tried; more than the last is given to no kernel while others have less."""
SAMPLES = 512
_ELEMENTS = ElementPattern()
Batch = tuple[Any, Any, Any]
"""(x, y, sample weights or None)"""


@dataclass(frozen=True)
class SensitivityCurve:
    """The loss when one kernel alone is pruned.

    Attributes:
        name: of the kernel, `encoder/dense/kernel`.
        size: its weights.
        points: (share of zeros, loss), at growing shares; the first is the kernel as it is.
    """

    name: str
    size: int
    points: tuple[tuple[float, float], ...]

    def steps(self) -> list[tuple[float, float, float]]:
        """(loss for each weight more, from this share, to that share), dearer and dearer: the lower hull of the curve,
        where a loss that falls counts as one that stays."""
        shares = [share for share, _ in self.points]
        losses = np.maximum.accumulate([loss for _, loss in self.points]).tolist()
        hull = [0]
        for index in range(1, len(shares)):
            while len(hull) > 1 and _slope(shares, losses, *hull[-2:]) >= _slope(shares, losses, hull[-1], index):
                hull.pop()
            hull.append(index)
        return [(_slope(shares, losses, a, b) / self.size, shares[a], shares[b]) for a, b in pairwise(hull)]


@dataclass(frozen=True)
class Sensitivity:
    """Curves of all kernels that were measured; prints as a table.

    Attributes:
        curves: in the order of the model's layers.
        samples: on how many they were measured.
    """

    curves: tuple[SensitivityCurve, ...]
    samples: int

    def targets(self, sparsity: float) -> dict[str, float]:
        """Shares of zeros by kernel name with which that share of all weights is zero and the loss rises least: the
        last weight of each kernel costs the same, as far as single kernels tell (Shoham and Gersho 1988).

        Kernels keep the zeros that they have.
        """
        chosen = {curve.name: curve.points[0][0] for curve in self.curves}
        sizes = {curve.name: curve.size for curve in self.curves}
        left = sparsity * sum(sizes.values()) - sum(share * sizes[name] for name, share in chosen.items())
        steps = [(cost, curve.name, start, end) for curve in self.curves for cost, start, end in curve.steps()]
        for _, name, start, end in sorted(steps, key=lambda step: step[0]):
            if left <= 0:
                return chosen
            taken = min(left, (end - start) * sizes[name])
            chosen[name] = start + taken / sizes[name]
            left -= taken
        return {name: max(share, sparsity) for name, share in chosen.items()}  # more than was tried

    def __str__(self) -> str:
        width = max(len(curve.name) for curve in self.curves)
        lines = [f"loss when one kernel alone is pruned ({self.samples} samples)"]
        for curve in self.curves:
            points = "  ".join(f"{share:.0%} {loss:.4g}" for share, loss in curve.points)
            lines.append(f"{curve.name.ljust(width)}  {curve.size:>9}  {points}")
        return "\n".join(lines)


def sensitivity(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    shares: Sequence[float] = SHARES,
    samples: int = SAMPLES,
    batch_size: int = 128,
    include: Patterns | None = None,
    exclude: Patterns | None = None,
) -> Sensitivity:
    """Measures the loss on some samples when each kernel alone is pruned to several shares. The model stays as it was.

    Args:
        model: a trained and compiled model of Keras 3 or tf_keras.
        x: inputs (an array, or what the model takes of arrays), or a `tf.data.Dataset` or another iterable of batches
            (x, y) or (x, y, sample weights).
        y: targets, where x are inputs.
        shares: of zeros, growing, in (0, 1).
        samples: how many to use, the first ones.
        batch_size: of arrays.
        include: layer-name patterns of what to measure, as of `PruneCallback`.
        exclude: layer-name patterns of what not to.

    Raises:
        InputError: the model has no loss, the data no samples, or an argument is of no use.
    """
    kernels = select(find_kernels(model), include, exclude)
    return measure(model, kernels, list(batches_of(x, y, samples, batch_size)), shares)


def measure(
    model: Any,
    kernels: Sequence[Kernel],
    batches: Sequence[Batch],
    shares: Sequence[float] = SHARES,
    pattern: PruningPattern = _ELEMENTS,
    loss: Callable[[], float] | None = None,
) -> Sensitivity:
    """The curves of these kernels on these batches, when units of a pattern are pruned.

    loss: of the model as it is, on these batches; None takes the one that it is compiled with.
    """
    if not kernels or not batches:
        raise InputError("sensitivity: there are no kernels to measure, or no samples to measure them on")
    if list(shares) != sorted(set(shares)) or not all(0 < share < 1 for share in shares):
        raise InputError(f"shares={shares!r}: give growing shares of zeros between 0 and 1")
    loss = loss or _loss_on(model, batches)
    before = loss()
    curves = []
    for kernel in kernels:
        weight = float32_values(kernel.variable)
        present = float(np.mean(weight == 0))
        points = [(present, before)]
        with as_they_were([kernel]) as (whole,):
            for share in shares:
                if share > present:
                    units = round(pattern.unit_sparsity(share) * pattern.units(kernel.layout))
                    zeros = pattern.zeros(weight, kernel.layout, units)
                    kernel.variable.assign(np.where(zeros, np.zeros((), whole.dtype), whole))
                    points.append((share, loss()))
        curves.append(SensitivityCurve(kernel.name, weight.size, tuple(points)))
    return Sensitivity(tuple(curves), sum(_length(batch[0]) for batch in batches))


def batches_of(x: Any, y: Any = None, samples: int = SAMPLES, batch_size: int = 128) -> Iterator[Batch]:
    """The first samples as batches."""
    import tensorflow as tf

    if y is None and not (hasattr(x, "shape") or isinstance(x, dict)):
        seen = 0
        for batch in x:
            if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
                raise InputError("sensitivity: batches are to be (x, y) or (x, y, sample weights)")
            if seen < samples:
                yield (*batch, None)[:3] if len(batch) == 2 else tuple(batch)
            seen += _length(batch[0])
            if seen >= samples:
                return
        return
    if y is None:
        raise InputError("sensitivity: y is missing, the targets of x")
    for start in range(0, min(samples, _length(x)), batch_size):
        part = slice(start, min(start + batch_size, samples))
        yield (*(tf.nest.map_structure(lambda array, part=part: array[part], data) for data in (x, y)), None)


def _loss_on(model: Any, batches: Sequence[Batch]) -> Callable[[], float]:
    """Computes the mean loss over the samples, regularization included, as evaluation would."""
    import tensorflow as tf

    own = type(model).compute_loss.__module__.partition(".")[0] not in ("keras", "tf_keras")
    if getattr(model, "loss", None) is None and not own:
        raise InputError("sensitivity: the model has no loss: compile() it")

    @tf.function(reduce_retracing=True, autograph=False)
    def loss(x: Any, y: Any, weights: Any) -> Any:
        outputs = model(x, training=False)
        return tf.cast(model.compute_loss(x=x, y=y, y_pred=outputs, sample_weight=weights), tf.float32)

    def mean() -> float:
        sizes = [_length(batch[0]) for batch in batches]
        found = float(np.average([float(loss(*batch)) for batch in batches], weights=sizes))
        model.reset_metrics()  # tf_keras counts every loss that is computed
        return found

    return mean


def _length(x: Any) -> int:
    import tensorflow as tf

    return int(tf.nest.flatten(x)[0].shape[0])


def _slope(shares: Sequence[float], losses: Sequence[float], start: int, end: int) -> float:
    return (losses[end] - losses[start]) / (shares[end] - shares[start])
