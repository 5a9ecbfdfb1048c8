"""Which weights of several kernels to prune first: layer-adaptive magnitudes, comparable across layers.

The score of a weight is w² divided by the sum of all w'² of its kernel that are no smaller (LAMP: Lee, Park, Mo, Ahn,
Shin 2021, arXiv:2010.07611). The largest weight of each kernel scores 1, so that none is emptied.
"""

from collections.abc import Sequence

import numpy as np


def lamp_scores(weight: np.ndarray) -> np.ndarray:
    """The scores of a kernel's weights in ascending order, float64."""
    squares = np.sort(np.square(weight.ravel().astype(np.float64)))
    rest = np.cumsum(squares[::-1])[::-1]
    return squares / np.maximum(rest, np.finfo(np.float64).tiny)


class LampRanking:
    """The weights of several kernels in one order.

    Within a kernel that is the order of magnitudes, so numbers of weights say all.

    Attributes:
        size: how many weights there are.
    """

    def __init__(self, weights: Sequence[np.ndarray]) -> None:
        self._scores = [lamp_scores(weight) for weight in weights]
        self._all = np.sort(np.concatenate(self._scores))
        self.size = self._all.size

    def counts(self, count: int) -> list[int]:
        """How many of each kernel are among the `count` lowest of all: those of ties too."""
        if count <= 0:
            return [0] * len(self._scores)
        limit = self._all[min(count, self.size) - 1]
        return [int(np.searchsorted(scores, limit, "right")) for scores in self._scores]
