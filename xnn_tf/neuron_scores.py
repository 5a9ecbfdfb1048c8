"""How much each neuron matters: a number for each of a group, the least of which go first."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from schema.errors import InputError
from xnn_tf.channels import ChannelGroup
from xnn_tf.channels.units import Role
from xnn_tf.gradient_tap import GradientTap
from xnn_tf.keras_compat import float32_values


class Score(Protocol):
    """Scores of the neurons of one group."""

    def __call__(self, group: ChannelGroup) -> np.ndarray:
        """(neurons,), finite; comparable between groups where they are ranked together."""


def l2(group: ChannelGroup) -> np.ndarray:
    """√Σw² over what computes a neuron and what reads it (columns and rows), in all layers of its group, divided by
    the root of the group's mean square.

    Magnitudes of filters: Li et al. 2017, arXiv:1608.08710; dividing by the layer's norm, so that layers compare:
    Molchanov et al. 2017, arXiv:1611.06440.
    """
    squares = np.sum([np.square(part, dtype=np.float64).sum(axis=1) for part in group.kernels()], axis=0)
    return np.sqrt(squares / max(float(squares.mean()), np.finfo(np.float64).tiny))


def bn_gamma(group: ChannelGroup) -> np.ndarray:
    """√Σγ² over the BatchNorm layers that a neuron passes (network slimming: Liu et al. 2017, arXiv:1708.06519)."""
    return np.sqrt(
        np.sum([np.square(m.slices(float32_values(m.weight.variable))).sum(axis=1) for m in _gammas(group)], axis=0)
    )


def has_gamma(group: ChannelGroup) -> bool:
    return bool(_gammas(group))


def _gammas(group: ChannelGroup) -> list[Any]:
    return [m for m in group.members if m.role is Role.CHANNEL and m.weight.name == "gamma"]


def taylor(tap: GradientTap) -> Score:
    """(Σ g·w)² over the weights that compute a neuron, averaged over recent batches: how the loss would change without
    it, to first order (Molchanov et al. 2019, arXiv:1906.10771), divided by the group's mean."""

    def score(group: ChannelGroup) -> np.ndarray:
        changes = tap.squares()[group.units].astype(np.float64)
        return changes / max(float(changes.mean()), np.finfo(np.float64).tiny)

    return score


def checked(criterion: Callable[[ChannelGroup], Any]) -> Score:
    """A user's criterion, with its results checked.

    Raises (when called):
        InputError: it gives something else than a finite number for each neuron.
    """

    def score(group: ChannelGroup) -> np.ndarray:
        scores = np.asarray(criterion(group), np.float64)
        if scores.shape != (len(group),) or not np.isfinite(scores).all():
            raise InputError(
                f"criterion: for {group.name} it must give {len(group)} finite numbers, one for each neuron; it gave "
                f"an array of shape {scores.shape}"
            )
        return scores

    return score
