"""What kernels return: 0, or why they stopped."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Return value of a kernel."""

    OK = 0
    INTERNAL = 1  # a case that the kernel's author held impossible
    INDEX_OUT_OF_RANGE = 2  # an index that the data holds lies outside of the tensor
    INVALID_ARGUMENT = 3  # another value in the data is outside of what the op allows
    LIMIT_EXCEEDED = 4  # a loop ran longer than allowed
