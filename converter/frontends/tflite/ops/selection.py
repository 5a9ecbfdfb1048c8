"""Choices: by a condition, by rows of a table."""

from __future__ import annotations

import numpy as np

from converter.frontends.tflite.dequantized import dequantized
from converter.frontends.tflite.reading import Reading, reads
from schema.graph import Tensor


@reads("SELECT")
def select(reading: Reading) -> None:
    """The condition has the operands' shape, is a scalar, or has one truth value for each index of their axis 0."""
    condition, a, b = reading.operands(3)
    rank = len(reading.shape(a))
    if len(reading.shape(condition)) == 1 and rank > 1:
        shape = reading.constant([-1] + [1] * (rank - 1), np.int32)
        condition = reading.intermediate("RESHAPE", [condition, shape], condition.dtype)
    reading.emit("SELECT_V2", [condition, a, b])


@reads("EMBEDDING_LOOKUP")
def embedding_lookup(reading: Reading) -> None:
    """Rows of a table; integers of a table become real numbers where the output holds those."""
    rows, table = reading.operands(2)
    if table.is_constant and table.dtype != reading.output().dtype:
        table = Tensor(table.name, reading.output().dtype, table.shape, None, dequantized(table))
    reading.emit("GATHER", [table, rows], axis=0, batch_dims=0)
