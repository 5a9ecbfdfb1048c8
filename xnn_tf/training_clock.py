"""Where training stands: steps done and, as far as it can be known, the share of the planned training."""

from dataclasses import dataclass


@dataclass
class TrainingClock:
    """Counts steps (batches) from the start of the planned training, over restarts.

    The position comes from the epoch and batch numbers that Keras passes to callbacks, so `initial_epoch` and
    `BackupAndRestore` continue where the earlier run stood.

    Attributes:
        epochs: epochs planned, counted from 0 (`fit(epochs=…)`); None where unknown.
        steps_per_epoch: None for a data set of unknown length until its first epoch is over.
        step: steps done.
        epoch: epochs done.
    """

    epochs: int | None
    steps_per_epoch: int | None
    step: int = 0
    epoch: int = 0
    _epoch_start: int = 0
    _running: bool = False

    @property
    def total(self) -> int | None:
        """Steps of the whole training, or None where unknown."""
        if self.epochs is None or self.steps_per_epoch is None:
            return None
        return self.epochs * self.steps_per_epoch

    def begin_epoch(self, epoch: int, steps_before: int) -> None:
        """Starts an epoch.

        Args:
            epoch: its number, from 0.
            steps_before: steps done by earlier runs; used only where training resumes and the length of an epoch is
            unknown.
        """
        if self.steps_per_epoch is not None:
            self._epoch_start = epoch * self.steps_per_epoch
        elif self._running:
            self._epoch_start = self.step
        else:
            self._epoch_start = steps_before if epoch else 0
        self.step, self.epoch, self._running = self._epoch_start, epoch, True

    def begin_batch(self, batch: int) -> None:
        """Sets the position to the start of a batch, numbered from 0 in its epoch."""
        self.step = self._epoch_start + batch

    def advance(self, steps: int) -> None:
        """Counts steps, not beyond the end of the epoch."""
        self.step += steps
        if self.steps_per_epoch is not None:
            self.step = min(self.step, self._epoch_start + self.steps_per_epoch)

    def end_epoch(self) -> None:
        """Ends an epoch; the length of the first one is that of the others."""
        self.epoch += 1
        if self.steps_per_epoch is None and self.step > self._epoch_start:
            self.steps_per_epoch = self.step - self._epoch_start
