"""The op table: `get("CONV_2D")` gives the class in `schema/ops/conv_2d.py`. Modules load when first asked for."""

from __future__ import annotations

import importlib
from functools import cache

from schema.errors import UnsupportedError
from schema.generated.layout import ENUMS
from schema.ops.base import Op, run

__all__ = ["NAMES", "Op", "get", "run"]

NAMES: tuple[str, ...] = tuple(ENUMS["OpCode"])


@cache
def get(name: str) -> type[Op]:
    """The op of that name. Raises UnsupportedError for a name that is not in the schema."""
    if name not in ENUMS["OpCode"]:
        raise UnsupportedError(f"there is no op {name!r} in the schema")
    module = importlib.import_module(f"schema.ops.{name.lower()}")
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Op) and getattr(value, "name", None) == name
    )
