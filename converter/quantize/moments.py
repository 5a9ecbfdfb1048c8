"""Mean and covariance of the numbers that a linear op's weights meet on the calibration data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from converter.quantize import matrices
from schema.graph import Node

FEWEST_ROWS = 32  # fewer say too little
ROWS_PER_SAMPLE = 16  # whether or not the number of samples is known: an array and an iterable of it give one file
BLOCK = 128  # covariances are kept between columns of one block: time and memory then grow with the columns only
CHUNK = 256  # rows that are added up at once, however they came in batches: sums then do not depend on the batches


def most_rows(columns: int) -> int:
    """How many rows to take of an op: some for each number that is estimated from them."""
    return max(512, 4 * min(columns, BLOCK))


class Moments:
    """Sums over rows, see `converter.quantize.matrices`. groups is known once something was added."""

    def __init__(self, node: Node):
        self.op = node.op
        self.groups = 0
        self.rows = 0
        self._node = node
        self._most = most_rows(matrices.columns(node))
        self._samples = 0
        self._chunk = np.empty(0, np.float32)  # (groups, CHUNK, columns)
        self._filled = 0
        self._sum: np.ndarray | None = None  # (groups, columns)
        self._products: list[np.ndarray] = []  # (groups, block, block)

    def add(self, x: np.ndarray) -> None:
        """Take in the op's input for a batch."""
        if self.rows >= self._most:
            return
        rows = matrices.of_input(self._node, x, self._samples, ROWS_PER_SAMPLE)[:, : self._most - self.rows]
        self._samples += x.shape[0]
        self.rows += rows.shape[1]
        if not self.groups:
            self.groups = rows.shape[0]
            self._chunk = np.empty((rows.shape[0], CHUNK, rows.shape[2]), np.float32)
        start = 0
        while start < rows.shape[1]:
            taken = min(CHUNK - self._filled, rows.shape[1] - start)
            self._chunk[:, self._filled : self._filled + taken] = rows[:, start : start + taken]
            self._filled += taken
            start += taken
            if self._filled == CHUNK:
                self._add_up()

    def enough(self) -> bool:
        return self.rows >= FEWEST_ROWS

    def mean(self) -> np.ndarray:
        """float64 (groups, columns)."""
        if self._filled:
            self._add_up()
        assert self._sum is not None
        return self._sum / self.rows

    def covariances(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(columns, float64 (groups, block, block)) of each block of columns."""
        mean = self.mean()
        for block, products in zip(_blocks(mean.shape[1]), self._products, strict=True):
            part = mean[:, block]
            yield block, products.astype(np.float64) / self.rows - part[:, :, np.newaxis] * part[:, np.newaxis]

    def _add_up(self) -> None:
        rows = self._chunk[:, : self._filled]
        blocks = [rows[:, :, block] for block in _blocks(rows.shape[2])]
        products = [block.transpose(0, 2, 1) @ block for block in blocks]
        if self._sum is None:
            self._sum, self._products = rows.sum(axis=1, dtype=np.float64), products
        else:
            self._sum += rows.sum(axis=1, dtype=np.float64)
            for total, product in zip(self._products, products, strict=True):
                total += product
        self._filled = 0


def _blocks(columns: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, columns)) for start in range(0, columns, BLOCK)]
