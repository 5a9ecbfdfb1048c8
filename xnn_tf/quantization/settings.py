"""What quantization-aware training may be told, for the model and for single layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schema.errors import InputError

WEIGHT_BITS = (8, 4)
ACTIVATION_BITS = (8, 16)
RANGES = ("moving", "learned")
WEIGHT_STEPS = ("largest", "learned", "tensor")


@dataclass(frozen=True)
class Settings:
    """How one layer is quantized.

    Attributes:
        weights: bits of weights, 8 or 4, symmetric with a step for each output channel.
        activations: bits of activations: 8 (one scale and zero point for each tensor), or 16 (symmetric).
        ranges: where the ranges of activations come from: "moving" averages of the smallest and largest number of each
            batch, or "learned" by gradient, from the first batch's on.
        weight_steps: "largest" (each channel's largest weight is the largest integer), "learned" by gradient, or
            "tensor" (one step for the whole kernel: a clustered one keeps its few values, and quantize_aware chooses
            this for those by itself).
        momentum: of moving averages.
        freeze_batch_norm: after how many training steps BatchNorms use their moving averages in training too, so that
            it computes what the converted file will; None for never.
    """

    weights: int = 8
    activations: int = 8
    ranges: str = "moving"
    weight_steps: str = "largest"
    momentum: float = 0.99
    freeze_batch_norm: int | None = None

    def __post_init__(self) -> None:
        for name, known in (
            ("weights", WEIGHT_BITS),
            ("activations", ACTIVATION_BITS),
            ("ranges", RANGES),
            ("weight_steps", WEIGHT_STEPS),
        ):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(map(repr, known))}")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum is {self.momentum}; it is a number from 0 up to 1, which is left out")
        if self.freeze_batch_norm is not None and self.freeze_batch_norm < 0:
            raise InputError(f"freeze_batch_norm is {self.freeze_batch_norm}; it is a number of steps, or None")


@dataclass(frozen=True)
class QuantizationRecipe(Settings):
    """Settings of a model.

    Attributes:
        exclude: patterns of layer names, as of `fnmatch`, that stay float.
        per_layer: settings that differ, by pattern: {"head*": {"activations": 16}}; the first that matches counts.
        strategies: how layers of your own are quantized: a function (layer, settings) -> Strategy by class.
    """

    exclude: str | Sequence[str] = ()
    per_layer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    strategies: Mapping[type, Callable[[Any, Settings], Any]] = field(default_factory=dict)

    def settings(self) -> Settings:
        """Those of layers that no pattern names."""
        return Settings(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Settings)})

    def settings_with(self, changes: Mapping[str, Any]) -> Settings:
        """Those of a layer that a pattern of per_layer names. Raises InputError for a setting that there is not."""
        known = [f.name for f in dataclasses.fields(Settings)]
        for name in changes:
            if name not in known:
                raise InputError(f"per_layer sets {name!r}; settings are {', '.join(known)}")
        return dataclasses.replace(self.settings(), **changes)


def recipe_of(given: QuantizationRecipe | Mapping[str, Any] | None) -> QuantizationRecipe:
    """The recipe that was meant: one, its arguments, or None for the default."""
    if given is None:
        return QuantizationRecipe()
    if isinstance(given, QuantizationRecipe):
        return given
    if isinstance(given, Mapping):
        known = [f.name for f in dataclasses.fields(QuantizationRecipe)]
        if unknown := [name for name in given if name not in known]:
            raise InputError(f"recipe has {', '.join(map(repr, unknown))}; it takes {', '.join(known)}")
        return QuantizationRecipe(**given)
    raise InputError(f"recipe is {given!r}: give a QuantizationRecipe, or a dict of its arguments")
