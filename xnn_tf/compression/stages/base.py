"""What every stage of a recipe is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from xnn_tf.compression.context import Context


class Stage(ABC):
    """One stage: a frozen dataclass of its settings, which says how it changes the model.

    Attributes:
        name: in the state, the report and on the screen.
        once: it runs before the first level only, not in each.
        share: of a level's epochs, relative to the other stages'; 0 for one that does not train.
    """

    name: ClassVar[str]
    once: ClassVar[bool] = False
    share: float = 0.0

    @abstractmethod
    def run(self, context: Context) -> dict[str, Any]:
        """Works on `context.model`, and returns what it found: plain data."""

    def keep(self, context: Context) -> list[Any]:
        """Callbacks that hold what this stage made while a later one trains the model."""
        return []

    def suggest(self, trial: Any) -> Stage:
        """The stage with other settings, by `trial.suggest_…` of Optuna; as it is where there is nothing to search."""
        return self


def levels_of(context: Context, dense: int, conv: int | None) -> dict[str, int]:
    """A number for each kernel: one for matrices, another for convolutions (or the same, where None)."""
    return {name: dense if weight.ndim == 2 or conv is None else conv for name, weight in context.weights().items()}
