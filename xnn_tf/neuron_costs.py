"""What a model costs with some of its neurons: in neurons, weights, or multiplications."""

import math

import numpy as np

from schema.errors import InputError
from xnn_tf.channels import ChannelGroups
from xnn_tf.channels.rules.base import LinkedCall
from xnn_tf.channels.symbolic import keras_class

COSTS = ("neurons", "weights", "macs")


class NeuronCosts:
    """Counts the share of a cost that goes with neurons."""

    def __init__(self, groups: ChannelGroups, units: np.ndarray, of: str) -> None:
        """Args:
            groups: of the model.
            units: the neurons that may go, by number.
            of: one of `COSTS`.

        Raises:
            InputError: multiplications of a layer whose results have an unknown size.
        """
        self._groups, self._units, self._of = groups, units, of
        self._times = {} if of != "macs" else _applications(groups)
        self._total = self._cost(np.ones(groups.unit_count, bool))

    def removed(self, pruned: np.ndarray) -> float:
        """The share, in [0, 1], that goes with the neurons marked in a bool array by number."""
        if self._of == "neurons":
            return float(pruned[self._units].mean())
        return 1 - self._cost(~pruned) / self._total

    def _cost(self, keep: np.ndarray) -> float:
        cost = 0.0
        for weight in self._groups.weights:
            times = 1.0 if self._of == "weights" else self._times.get(id(weight.variable), 0.0)
            sizes = [
                np.count_nonzero(keep[self._groups.unit_of[weight.axes[axis]]]) if axis in weight.axes else size
                for axis, size in enumerate(weight.shape)
            ]
            cost += times * math.prod(sizes)
        return cost


def _applications(groups: ChannelGroups) -> dict[int, float]:
    """How often each number of a kernel multiplies for one sample, by `id(variable)`."""
    times: dict[int, float] = {}
    kernels = {id(weight.variable) for weight in groups.weights if weight.is_kernel}
    for at in groups.calls:
        for variable in getattr(at.call.layer, "weights", ()):
            if id(variable) in kernels:
                times[id(variable)] = times.get(id(variable), 0.0) + _places(at)
    return times


def _places(at: LinkedCall) -> float:
    kind = keras_class(at.call.layer)
    if kind == "Embedding":
        return 0.0
    reads = kind.endswith("Transpose") or kind in ("LSTM", "GRU", "SimpleRNN")
    value, channels = (at.call.inputs[0], at.inputs[0]) if reads else (at.call.outputs[0], at.outputs[0])
    axis = len(value.shape) - 1 if channels is None else channels.axis
    sizes = [size for index, size in enumerate(value.shape) if index not in (0, axis)]
    if None in sizes:
        raise InputError(
            f'of="macs": {at.call.path} has results of unknown size {value.shape}: build the model for a fixed size, '
            'or take of="weights"'
        )
    return float(math.prod(int(size or 0) for size in sizes))
