"""What a compression is doing, printed while it does it."""

import sys
import time
from typing import Any

from xnn_tf.callback import Callback, Logs


class Progress:
    """A line for each finished step, and on a terminal a bar that moves while epochs go by. Silent where not
    `verbose`."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._console = _console() if verbose else None
        self._bar: Any = None
        self._title = ""

    def say(self, line: str) -> None:
        """Prints a line."""
        if not self._verbose:
            return
        if self._console is None:
            print(line, flush=True)
        else:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begin(self, title: str) -> None:
        """Names the step that begins, for the bar."""
        self._title = title

    def epochs(self, total: int) -> Callback:
        """A callback that shows how far a `fit` is."""
        return _EpochBar(
            self._console if self._console is not None and self._console.is_terminal else None, self._title, total
        )


class _EpochBar(Callback):
    def __init__(self, console: Any, title: str, total: int) -> None:
        super().__init__()
        self._console, self._title, self._total = console, title, total
        self._bar: Any = None

    def on_train_begin(self, logs: Logs = None) -> None:
        if self._console is None:
            return
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        self._bar = Bar(*columns, TimeElapsedColumn(), console=self._console, transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self._title, total=self._total)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._bar is not None:
            loss = f", loss {float(logs['loss']):.4f}" if logs and "loss" in logs else ""
            self._bar.update(self._task, completed=epoch + 1, description=f"{self._title}{loss}")

    def on_train_end(self, logs: Logs = None) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=sys.stdout)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start
