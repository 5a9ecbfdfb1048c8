"""Sizes that are known in part: polynomials over unknowns, which can be added, multiplied, divided and compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any


class Size:
    """A polynomial with integer coefficients over symbols. Immutable and hashable; a number has no symbols."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[tuple, int]):
        self.terms = {symbols: factor for symbols, factor in terms.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))

    @staticmethod
    def number(value: int) -> Size:
        return _number(int(value))

    @staticmethod
    def symbol(key: Any) -> Size:
        return Size({(key,): 1})

    @property
    def value(self) -> int | None:
        """The number, None where a symbol is in it."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def __eq__(self, other) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for symbols, factor in other.terms.items():
            terms[symbols] = terms.get(symbols, 0) + factor
        return Size(terms)

    def __mul__(self, other: Size) -> Size:
        terms: dict[tuple, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                symbols = tuple(sorted(a + b, key=hash))
                terms[symbols] = terms.get(symbols, 0) + x * y
        return Size(terms)

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.number(-1)

    def __floordiv__(self, other: Size) -> Size:
        """Rounded down as Python does; exact where the divisor is one term that all terms hold."""
        a, b = self.value, other.value
        if a is not None and b:
            return Size.number(a // b)
        if len(other.terms) == 1:
            ((divisor, factor),) = other.terms.items()
            quotient: dict[tuple, int] = {}
            for symbols, x in self.terms.items():
                rest = list(symbols)
                try:
                    for symbol in divisor:
                        rest.remove(symbol)
                except ValueError:
                    break
                if x % factor:
                    break
                quotient[tuple(rest)] = x // factor
            else:
                return Size(quotient)
        return Size.symbol(("//", self, other))

    def __mod__(self, other: Size) -> Size:
        a, b = self.value, other.value
        if a is not None and b:
            return Size.number(a % b)
        return Size.symbol(("%", self, other))

    def __repr__(self) -> str:
        return " + ".join("*".join(map(str, (factor, *symbols))) for symbols, factor in self.terms.items()) or "0"


@lru_cache(maxsize=4096)
def _number(value: int) -> Size:
    return Size({(): value})


Sizes = tuple[Size, ...]
Guess = tuple[Size | None, ...]
"""Dimensions, None where a rule cannot tell."""
ONE = Size.number(1)


def product(sizes: Iterable[Size]) -> Size:
    return math.prod(sizes, start=ONE)


def values(sizes: Sequence[Size]) -> list[int | None]:
    """Each size's number, None for those that hold a symbol."""
    return [size.value for size in sizes]
