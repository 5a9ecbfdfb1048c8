"""Reductions over axes, running sums, and where the largest element is."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from schema.graph import Tensor

OPS = {
    "Mean": "MEAN",
    "Sum": "SUM",
    "Max": "REDUCE_MAX",
    "Min": "REDUCE_MIN",
    "Prod": "REDUCE_PROD",
    "Any": "REDUCE_ANY",
    "All": "REDUCE_ALL",
}


@reads(*OPS)
def reduce(reading: Reading) -> Result:
    return reading.emit(
        OPS[reading.node.op], reading.tensor(0), _axes(reading), keep_dims=reading.attribute("keep_dims")
    )


@reads("EuclideanNorm")
def euclidean_norm(reading: Reading) -> Result:
    squares = reading.emit("SQUARE", reading.tensor(0))
    return reading.emit("SQRT", reading.emit("SUM", squares, _axes(reading), keep_dims=reading.attribute("keep_dims")))


@reads("ArgMax", "ArgMin")
def arg(reading: Reading) -> Result:
    axis = reading.constant(reading.integer(1, "the axis") if len(reading) > 1 else 0, np.int32)
    op = "ARG_MAX" if reading.node.op == "ArgMax" else "ARG_MIN"
    return reading.emit(op, reading.tensor(0), axis, dtype=reading.attribute("output_type"))


@reads("Cumsum")
def cumsum(reading: Reading) -> Result:
    axis = reading.constant(reading.integer(1, "the axis"), np.int32)
    flags = {name: reading.attribute(name) for name in ("exclusive", "reverse")}
    return reading.emit("CUMSUM", reading.tensor(0), axis, **flags)


def _axes(reading: Reading) -> Tensor:
    return reading.constant(np.ravel(reading.value(1, "the axes")), np.int32)
