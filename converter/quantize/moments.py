"""Mean and covariance of the numbers that a linear op's weights meet on the calibration data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from converter.quantize import matrices
from schema.graph import Node

FEWEST_ROWS = 32  # fewer say too little
ROWS_PER_SAMPLE = 16  # of the first samples
FIRST_SAMPLES = 32  # twice as many samples have half the rows each, and so on
BLOCK = 128  # covariances are kept between columns of one block: time and memory then grow with the columns only
CHUNK = 256  # rows that are added up at once, however they came in batches: sums then do not depend on the batches


def rows_of(sample: int) -> int:
    """How many rows to take of a sample.

    Few samples have to tell all, of many a row each is enough. That depends on a sample's number and not on how many
    there are, which is not always known: an array and an iterable of it give one file.
    """
    return max(ROWS_PER_SAMPLE >> (sample // FIRST_SAMPLES).bit_length(), 1)


class Moments:
    """Weighted sums over rows, see `converter.quantize.matrices`: every sample counts the same.

    groups is known once something was added.
    """

    def __init__(self, node: Node):
        self.op = node.op
        self.groups = 0
        self.rows = 0
        self._node = node
        self._samples = 0
        self._weight = 0.0
        self._chunk = np.empty(0, np.float32)  # (groups, CHUNK, columns), rows times the roots of their weights
        self._roots = np.empty(CHUNK, np.float32)
        self._filled = 0
        # (groups, columns): the mean of the first rows. What is summed is how far rows are from it: a variance that is
        # small beside its mean would be lost in float32 products.
        self._centre: np.ndarray | None = None
        self._sum: np.ndarray | None = None  # (groups, columns)
        self._products: list[np.ndarray] = []  # (groups, block, block)

    def add(self, x: np.ndarray) -> None:
        """Take in the op's input for a batch."""
        start = 0
        while start < len(x):
            count = rows_of(self._samples)
            end = start + 1
            while end < len(x) and rows_of(self._samples + end - start) == count:
                end += 1
            rows = matrices.of_input(self._node, x[start:end], self._samples, count)
            self._append(rows, (end - start) / rows.shape[1])
            self._samples += end - start
            start = end

    def _append(self, rows: np.ndarray, weight: float) -> None:
        if not self.groups:
            self.groups = rows.shape[0]
            self._chunk = np.empty((rows.shape[0], CHUNK, rows.shape[2]), np.float32)
        self.rows += rows.shape[1]
        self._weight += weight * rows.shape[1]
        root = np.float32(weight**0.5)
        start = 0
        while start < rows.shape[1]:
            taken = min(CHUNK - self._filled, rows.shape[1] - start)
            filled = slice(self._filled, self._filled + taken)
            np.multiply(rows[:, start : start + taken], root, out=self._chunk[:, filled])
            self._roots[filled] = root
            self._filled += taken
            start += taken
            if self._filled == CHUNK:
                self._add_up()

    def enough(self) -> bool:
        return self.rows >= FEWEST_ROWS

    def mean(self) -> np.ndarray:
        """float64 (groups, columns)."""
        shift = self._shift()
        assert self._centre is not None
        return self._centre + shift

    def _shift(self) -> np.ndarray:
        """How far the mean is from the centre."""
        if self._filled:
            self._add_up()
        assert self._sum is not None
        return self._sum / self._weight

    def covariances(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(columns, float64 (groups, block, block)) of each block of columns."""
        shift = self._shift()
        for block, products in zip(_blocks(shift.shape[1]), self._products, strict=True):
            part = shift[:, block]
            yield block, products.astype(np.float64) / self._weight - part[:, :, np.newaxis] * part[:, np.newaxis]

    def _add_up(self) -> None:
        rows, roots = self._chunk[:, : self._filled], self._roots[: self._filled]
        if self._centre is None:
            self._centre = (roots @ rows) / (roots @ roots)
        rows -= roots[:, np.newaxis] * self._centre[:, np.newaxis]
        blocks = [rows[:, :, block] for block in _blocks(rows.shape[2])]
        products = [block.transpose(0, 2, 1) @ block for block in blocks]
        sums = roots.astype(np.float64) @ rows
        if self._sum is None:
            self._sum, self._products = sums, products
        else:
            self._sum += sums
            for total, product in zip(self._products, products, strict=True):
                total += product
        self._filled = 0


def _blocks(columns: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, columns)) for start in range(0, columns, BLOCK)]
