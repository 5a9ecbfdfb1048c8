"""The PyPI package `tflite`: the names and numbers of TFLite's operators and enums, generated from its schema.

Its readers of tables are not used: they follow offsets without looking where those lead.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from schema.errors import UnsupportedError


@cache
def package() -> ModuleType:
    """The package. Raises UnsupportedError, naming the extra, where it is not installed."""
    try:
        import tflite
    except ImportError as error:
        raise UnsupportedError(
            f"reading .tflite files needs the package tflite ({error}): pip install 'xnn[tflite]'"
        ) from None
    return tflite


def members(name: str) -> dict[str, int]:
    """An enum's or union's members: name -> number."""
    return {k: v for k, v in vars(getattr(package(), name)).items() if isinstance(v, int) and not k.startswith("_")}


@cache
def operators() -> dict[int, str]:
    """Builtin operators: number -> name."""
    return {number: name for name, number in members("BuiltinOperator").items()}
