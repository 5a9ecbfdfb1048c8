"""What one run may take: bytes of a tensor, iterations of all its loops together. Files from strangers ask for any
number of either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from schema.errors import ExecutionError

MAX_TENSOR_BYTES = 1 << 40
MAX_ITERATIONS = (1 << 31) - 1
"""What an int32 counts to, as loops do. The limit where nobody sets one."""

_memory: ContextVar[int] = ContextVar("bytes that a tensor may take", default=MAX_TENSOR_BYTES)
_left: ContextVar[list[int] | None] = ContextVar("iterations that are left", default=None)


@contextmanager
def memory(most: int) -> Iterator[None]:
    """Within this context no tensor takes more than so many bytes."""
    token = _memory.set(most)
    try:
        yield
    finally:
        _memory.reset(token)


def memory_limit() -> int:
    return _memory.get()


@contextmanager
def iterations(most: int = MAX_ITERATIONS) -> Iterator[None]:
    """Within this context loops make so many iterations, all together; in one such context inside of another, those
    of the outer one.
    """
    token = _left.set([most] if _left.get() is None else _left.get())
    try:
        yield
    finally:
        _left.reset(token)


def count_iteration() -> None:
    """Called before each iteration of a loop. Raises ExecutionError where none is left."""
    left = _left.get()
    if left is None:
        return
    if not left[0]:
        raise ExecutionError("the loop does not end within the limit on iterations (iteration_limit)")
    left[0] -= 1
