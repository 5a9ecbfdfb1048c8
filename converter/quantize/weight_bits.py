"""How many bits the weights of which layers take: `weights="4bit"`, or more closely "head=8bit, conv*=3bit, 4bit"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schema.errors import InputError

MOST_BITS = 8


@dataclass(frozen=True)
class WeightBits:
    """layers: (pattern of layer names, bits), the first that matches counts. others: bits of layers that no pattern
    names; None leaves them as they are.
    """

    layers: tuple[tuple[str, int], ...] = ()
    others: int | None = None

    def __bool__(self) -> bool:
        return bool(self.layers) or self.others is not None


def weight_bits(value: Any) -> WeightBits:
    """Reads the argument: None, a number of bits, "4bit", a mapping of layer-name patterns to either, or a string of
    several, separated by commas, such as "head=8bit,4bit". Raises InputError for anything else.
    """
    if value is None:
        return WeightBits()
    if isinstance(value, WeightBits):
        return value
    if isinstance(value, str):
        items = [item.strip() for item in value.split(",") if item.strip()]
        pairs = [(pattern.strip(), bits) for pattern, _, bits in (item.rpartition("=") for item in items)]
    elif isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        pairs = [("", value)]
    layers = tuple((pattern, _bits(bits)) for pattern, bits in pairs if isinstance(pattern, str) and pattern)
    others = [_bits(bits) for pattern, bits in pairs if pattern == ""]
    if len(layers) + len(others) != len(pairs) or len(others) > 1:
        raise InputError(
            f"weights is {value!r}: give bits such as '4bit', layers such as 'head=8bit,conv*=3bit', or both"
        )
    return WeightBits(layers, others[0] if others else None)


def _bits(value: Any) -> int:
    text = str(value).strip().lower()
    for ending in ("bits", "bit"):
        text = text.removesuffix(ending)
    if not isinstance(value, (str, int)) or isinstance(value, bool) or not text.isdecimal():
        raise InputError(f"weights has {value!r}: give a number of bits such as '4bit'")
    if not 1 <= int(text) <= MOST_BITS:
        raise InputError(f"weights has {value!r}: 1 to {MOST_BITS} bits are possible")
    return int(text)
