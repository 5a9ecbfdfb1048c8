"""Parameter blocks: what a kernel is told, as named 64-bit slots in memory.

One declaration serves the kernel, which reads the slots by name, and the planner, which packs them; it does not need
numba. Slots hold int64 (numbers, addresses) or, where declared so, the bits of a float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


class ParameterBlock:
    """The declaration of a block.

    `slots` are the names in their order in memory; `floats` says which of them hold a float64. Raises ValueError for
    names that are no identifiers, occur twice, or are float without being a slot.
    """

    def __init__(self, name: str, slots: Iterable[str], floats: Iterable[str] = ()) -> None:
        self.name = name
        self.slots = tuple(slots)
        self.floats = frozenset(floats)
        if not all(slot.isidentifier() for slot in self.slots) or len(set(self.slots)) != len(self.slots):
            raise ValueError(f"{name}: slots must be distinct identifiers, not {self.slots}")
        if not self.floats <= set(self.slots):
            raise ValueError(f"{name}: float slots {sorted(self.floats - set(self.slots))} are no slots")

    def __repr__(self) -> str:
        return f"ParameterBlock({self.name!r}, {len(self.slots)} slots)"

    def pack(self, values: Mapping[str, Any]) -> np.ndarray:
        """The block as an int64 array, one element per slot.

        Raises TypeError if a slot is missing, unknown, or an int64 slot is given something that is no integer.
        """
        missing, unknown = set(self.slots) - set(values), set(values) - set(self.slots)
        if missing or unknown:
            raise TypeError(
                f"parameters of {self.name}: missing {sorted(missing) or 'none'}, unknown {sorted(unknown) or 'none'}"
            )
        packed = np.empty(len(self.slots), np.int64)
        floats = packed.view(np.float64)
        for i, slot in enumerate(self.slots):
            value = values[slot]
            if slot in self.floats:
                floats[i] = value
            elif isinstance(value, (int, np.integer)):
                packed[i] = value
            else:
                raise TypeError(f"parameters of {self.name}: {slot} must be an integer, not {value!r}")
        return packed
