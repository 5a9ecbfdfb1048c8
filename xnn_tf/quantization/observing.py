"""While ranges are found from calibration data: models compute, and round, by what they have seen so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observing: ContextVar[bool] = ContextVar("ranges are being observed", default=False)


@contextmanager
def observing() -> Iterator[None]:
    """Within this context, models that run eagerly outside of training widen their ranges to what they see."""
    token = _observing.set(True)
    try:
        yield
    finally:
        _observing.reset(token)


def is_observing() -> bool:
    return _observing.get()
