"""Reading the targets of a pruning: shares of zeros, for all layers and for single ones."""

import numbers
from collections.abc import Mapping
from typing import Any

from schema.errors import InputError


def target_share(value: Any, argument: str) -> float:
    """A share of zeros in [0, 1).

    Raises:
        InputError: it is none.
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= float(value) < 1:
        return float(value)
    raise InputError(f"{argument}={value!r}: give a share of zeros from 0.0 up to, and not including, 1.0")


def layer_targets(per_layer: Any) -> dict[str, float | None]:
    """Shares by layer-name pattern; None keeps the zeros that there are.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(per_layer, Mapping) or not all(isinstance(pattern, str) for pattern in per_layer):
        raise InputError(f"per_layer={per_layer!r}: give a dict of layer-name patterns and their targets")
    return {
        pattern: None if value is None else target_share(value, f"per_layer[{pattern!r}]")
        for pattern, value in per_layer.items()
    }
