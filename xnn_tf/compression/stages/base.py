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
