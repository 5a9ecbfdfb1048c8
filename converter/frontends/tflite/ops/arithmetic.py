"""Functions of one number, and sums, that the schema spells otherwise."""

from __future__ import annotations

import numpy as np

from converter.frontends.tflite.reading import Reading, reads

INT32 = np.dtype(np.int32)


@reads("ELU")
def elu(reading: Reading) -> None:
    reading.emit("ELU", reading.operands(1), alpha=1.0)


@reads("RELU_0_TO_1")
def relu_0_to_1(reading: Reading) -> None:
    reading.emit("CLAMP", reading.operands(1), min=0.0, max=1.0)


@reads("LOG_SOFTMAX")
def log_softmax(reading: Reading) -> None:
    reading.emit("LOG_SOFTMAX", reading.operands(1))


@reads("L2_NORMALIZATION", options="L2NormOptions")
def l2_normalization(reading: Reading) -> None:
    reading.no_activation()
    reading.emit("L2_NORMALIZATION", reading.operands(1))


@reads("ADD_N")
def add_n(reading: Reading) -> None:
    """Summed from the first to the last."""
    *terms, last = reading.operands(len(reading.inputs))
    if not terms:
        reading.emit("CAST", [last], dtype=last.dtype)
        return
    total = terms[0]
    for term in terms[1:]:
        total = reading.intermediate("ADD", [total, term], last.dtype)
    reading.emit("ADD", [total, last])


@reads("ZEROS_LIKE")
def zeros_like(reading: Reading) -> None:
    shape = reading.intermediate("SHAPE", reading.operands(1), INT32, dtype=INT32)
    reading.emit("FILL", [shape, reading.constant(0, reading.output().dtype)])
