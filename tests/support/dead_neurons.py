"""Models with neurons that do nothing, and the check that removing them changes nothing."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from xnn_tf.channels import channel_groups
from xnn_tf.channels.units import Role


def randomize(model: Any, rng: np.random.Generator) -> None:
    """Biases, BatchNorm's numbers and slopes far from where they are initialised."""
    for weight in model.weights:
        name = weight.name.rpartition("/")[2].partition(":")[0]
        if name in ("moving_variance", "gamma"):
            weight.assign(
                rng.uniform(0.3, 2.0, weight.shape)
                * np.where(rng.random(weight.shape) < 0.3, -1, 1) ** (name == "gamma")
            )
        elif name in ("bias", "beta", "moving_mean", "alpha"):
            weight.assign(rng.normal(0, 0.5, weight.shape))


def calibrate(model: Any, x: np.ndarray) -> None:
    """Takes BatchNorm's moving averages from data, so that whole nets tell inputs apart."""
    layers = [layer for layer in model.layers if type(layer).__name__ == "BatchNormalization"]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    for _ in range(2):
        model(x, training=True)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def kill(model: Any, rng: np.random.Generator, share: float = 0.5, ways: tuple[str, ...] = ("columns",)) -> set[int]:
    """Makes some neurons of each removable group do nothing; returns their numbers.

    ways: "columns" sets what computes them to zero (kernel columns, biases, BatchNorm's factors), "rows" what reads
    them. Of two ways, each serves every second neuron.
    """
    killed: set[int] = set()
    for group in channel_groups(model).removable:
        dead = rng.permutation(len(group))[: int(share * len(group))]
        killed.update(group.units[dead].tolist())
        for member in group.members:
            way = "rows" if member.role is Role.ROW else "columns"
            if way in ways and member.role is not Role.STATE:
                values = np.moveaxis(np.array(member.weight.variable.numpy()), member.axis, 0)
                values[member.positions[dead[ways.index(way) :: len(ways)]].ravel()] = 0
                member.weight.variable.assign(np.moveaxis(values, 0, member.axis))
    return killed


def load_zoo(shared: Any, name: str, keras: Any) -> Any:
    """A net of the zoo with its trained weights."""
    spec = importlib.util.spec_from_file_location("zoo", shared / "zoo" / "zoo.py")
    assert spec is not None and spec.loader is not None
    zoo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(zoo)
    return zoo.load(name, keras)
