"""What the converter is doing, shown on standard error while it does it. Nothing is shown where no person watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Stages and how far they are. seconds: how long each finished stage took."""

    def __init__(self, bar: Any = None):
        self._bar = bar
        self._task: Any = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage and show its name."""
        start = time.perf_counter()
        if self._bar is not None:
            self._task = self._bar.add_task(name, total=None)
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start
            if self._bar is not None:
                self._bar.remove_task(self._task)
                self._task = None

    def detail(self, what: str) -> None:
        """Show what the stage is at."""
        if self._task is not None:
            self._bar.update(self._task, description=what)

    def advance(self, what: str, done: int, total: int | None) -> None:
        """Show how far the stage is, total being unknown (None) for data that comes as a stream."""
        if self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total)


@contextmanager
def shown() -> Iterator[Progress]:
    """A progress display on a terminal, a silent one elsewhere and where rich is not installed."""
    columns = _columns() if sys.stderr is not None and sys.stderr.isatty() else None
    if columns is None:
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Progress(bar)


def _columns() -> list[Any] | None:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    return [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
