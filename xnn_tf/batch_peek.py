"""Looks at the first batches of a `fit` without taking them away from the training."""

from collections import deque
from typing import Any

from schema.errors import UnsupportedError


class BatchPeek:
    """Takes batches from the iterator that a train function gets, and gives them to it nevertheless.

    The train function is called with iterators of its own type (it is not traced anew), which hold the batches that
    were looked at, until they are used up.
    """

    def __init__(self, steps_per_execution: int) -> None:
        self._steps = steps_per_execution
        self._taken: deque[Any] = deque()

    def take(self, iterator: Any, samples: int) -> list[Any]:
        """At least so many samples, as whole executions, or what there is.

        Raises:
            UnsupportedError: batches are distributed over replicas.
        """
        import tensorflow as tf

        if not isinstance(iterator, tf.data.Iterator):
            raise UnsupportedError(
                f"batches of {type(iterator).__name__} cannot be looked at: give sensitivity_data=(x, y)"
            )
        seen = 0
        while seen < samples or len(self._taken) % self._steps:
            try:
                batch = next(iterator)
            except StopIteration:
                break
            self._taken.append(batch)
            seen += int(tf.nest.flatten(batch)[0].shape[0])
        return list(self._taken)

    def replay(self, iterator: Any) -> Any:
        """What to give to the train function instead of the iterator."""
        import tensorflow as tf

        if not self._taken:
            return iterator
        batches = [self._taken.popleft() for _ in range(min(self._steps, len(self._taken)))]
        return iter(tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=iterator.element_spec))
