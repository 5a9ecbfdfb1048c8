"""Recipes: named lists of stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schema.errors import InputError
from xnn_tf.compression.stages.base import Stage
from xnn_tf.compression.stages.convert import Conversion


@dataclass(frozen=True)
class Recipe:
    """How `compress` compresses. `dataclasses.replace` makes another of it.

    Attributes:
        name: for people and reports.
        stages: what runs, in this order: those marked `once` before the first level, the others in each.
        conversions: ways to make the file; the best of them counts.
        distill: (temperature, weight) of the base model's answers in the loss of all training; None trains on the data
        alone. first_ratio: with `max_drop`, how many times smaller than the float32 parameters the first level's file
        shall be. stride: and by which factor each further level is smaller, as long as the score allows. levels: how
        many there are at most; with a size as the goal, that many tries to hit it. epochs: of training in each level.
    """

    name: str
    stages: Sequence[Stage]
    conversions: Sequence[Conversion]
    distill: tuple[float, float] | None = None
    first_ratio: float = 10.0
    stride: float = 1.5
    levels: int = 4
    epochs: int = 12


def find_recipe(recipe: str | Recipe) -> Recipe:
    """A recipe by name.

    Raises:
        InputError: there is none of that name.
    """
    if isinstance(recipe, Recipe):
        return recipe
    from xnn_tf.compression.recipes import RECIPES

    if recipe not in RECIPES:
        raise InputError(f"recipe={recipe!r}: give one of {', '.join(RECIPES)}, or an xnn_tf.Recipe")
    return RECIPES[recipe]
