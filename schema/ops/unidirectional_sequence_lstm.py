"""UNIDIRECTIONAL_SEQUENCE_LSTM: a layer of LSTM cells (Hochreiter and Schmidhuber 1997; Sak et al. 2014) -> (y, the
last output state, the last cell state). Operands, in TFLite's order; those marked ? may be left out:

    0       x, a sequence
    1..4    weights (cells, in) of the input?, forget, cell and output gate
    5..8    recurrent weights (cells, out), likewise
    9..11   peepholes (cells,) from the cell's state to the input?, forget? and output? gate
    12..15  biases (cells,) of the input?, forget, cell and output gate
    16, 17  projection weights? (out, cells) and bias? (out,); without them out = cells
    18, 19  output state? (batch, out) and cell state? (batch, cells)
    20..23  layer normalization coefficients? (cells,) of the input, forget, cell and output gate

Without weights of the input gate, it is 1 - forget gate. With layer normalization a gate's sum is brought to mean 0 and
variance 1 over the cells and multiplied by the coefficients before the bias is added (TFLite kernels/lstm_eval.cc).
int8 sequences: integer_lstm.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schema.graph import TensorType
from schema.ops import integer_lstm, recurrent
from schema.ops.attributes import LSTMAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import QUANTIZED
from schema.ops.lstm_operands import (
    BIASES,
    CELL_STATE,
    GATES,
    NORMS,
    OPERANDS,
    OUTPUT_STATE,
    PEEPHOLE_OF,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT,
    WEIGHTS,
    check_operands,
    complete,
)

VARIANCE_FLOOR = 1e-8


class UnidirectionalSequenceLSTM(Op):
    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    Attributes = LSTMAttributes
    inputs = (1, OPERANDS)
    outputs = 3

    @classmethod
    def check(cls, attributes):
        require(all(0 <= scale < math.inf for scale in attributes.gate_scales), f"{attributes.gate_scales=}")
        for name in ("cell_clip", "projection_clip", "hidden_scale"):
            value = getattr(attributes, name)
            require(0 <= value < math.inf, f"{name} is {value}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        given = complete(inputs)
        integer = given[0].dtype in QUANTIZED
        if integer:
            integer_lstm.check_types(given)
        dtype = given[0].dtype if integer else recurrent.infer_dtype(cls.name, inputs)
        check_operands(given)
        batch, time, features = recurrent.sequence_dims(given[0], attributes.time_major)
        kernels = [recurrent.dims(given[WEIGHTS + i], 2, f"weights of the {g} gate") for i, g in enumerate(GATES)]
        again = [recurrent.dims(given[RECURRENT + i], 2, f"recurrent weights ({g})") for i, g in enumerate(GATES)]
        vectors = [recurrent.dims(given[i], 1, "vectors") for i in (*range(PEEPHOLES, PROJECTION), *range(NORMS, 24))]
        out, projected = recurrent.dims(given[PROJECTION], 2, "projection weights")
        state = recurrent.dims(given[OUTPUT_STATE], 2, "output states")
        cell = recurrent.dims(given[CELL_STATE], 2, "cell states")
        recurrent.agree("features", features, *(k[1] for k in kernels))
        rows = [*(k[0] for k in kernels), *(a[0] for a in again), *(v[0] for v in vectors), projected, cell[1]]
        cells = recurrent.agree("cells", *rows)
        biased = recurrent.dims(given[PROJECTION_BIAS], 1, "projection biases")[0]
        out = recurrent.agree("outputs", out, biased, state[1], *(a[1] for a in again))
        if given[PROJECTION] is None:
            out = cells = recurrent.agree("outputs and cells", out, cells)
        batch = recurrent.agree("batch", batch, state[0], cell[0])
        sequence = recurrent.sequence_shape(batch, time, out, attributes.time_major)
        cell_dtype = integer_lstm.DTYPES[CELL_STATE] if integer else dtype
        return [TensorType(sequence, dtype), TensorType((batch, out), dtype), TensorType((batch, cells), cell_dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return recurrent.macs(inputs[0], [*inputs[WEIGHTS:PEEPHOLES], complete(inputs)[PROJECTION]])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        if x.dtype in QUANTIZED:
            return cls.integers(attributes, complete(arrays), complete(inputs), outputs)
        given: list[Any] = [None if a is None else a.astype(np.float64) for a in complete(arrays)]
        activation = recurrent.ACTIVATIONS[attributes.activation]
        steps = recurrent.through_time(x, attributes.time_major)
        cells, out = given[RECURRENT + 1].shape
        h = recurrent.initial(given[OUTPUT_STATE], steps.shape[1], out)
        c = recurrent.initial(given[CELL_STATE], steps.shape[1], cells)
        results = []
        for step in steps:
            forget = recurrent.logistic(gate(given, 1, step, h, c))
            candidate = activation(gate(given, 2, step, h, None))
            let_in = 1 - forget if given[WEIGHTS] is None else recurrent.logistic(gate(given, 0, step, h, c))
            c = clip(forget * c + let_in * candidate, attributes.cell_clip)
            h = recurrent.logistic(gate(given, 3, step, h, c)) * activation(c)
            if given[PROJECTION] is not None:
                h = h @ given[PROJECTION].T
                h = clip(
                    h if given[PROJECTION_BIAS] is None else h + given[PROJECTION_BIAS], attributes.projection_clip
                )
            results.append(h)
        y = recurrent.as_sequence(results, x, out, attributes.time_major)
        return [y, h.astype(x.dtype), c.astype(x.dtype)]

    @classmethod
    def integers(cls, attributes, given, types, outputs):
        """The result for int8. A state that is left out is its zero point."""
        x, layer = given[0], integer_lstm.IntegerLSTM(attributes, given, list(types), list(outputs))
        steps = x if attributes.time_major else np.swapaxes(x, 0, 1)
        cells, out = given[RECURRENT + 1].shape
        h, c = given[OUTPUT_STATE], given[CELL_STATE]
        h = np.full((steps.shape[1], out), layer.h_zero) if h is None else h.astype(np.int64)
        c = np.zeros((steps.shape[1], cells), np.int64) if c is None else c.astype(np.int64)
        results = []
        for step in steps.astype(np.int64):
            h, c = layer.step(step, h, c)
            results.append(h)
        y = recurrent.as_sequence(results, x, out, attributes.time_major)
        return [y, h.astype(np.int8), c.astype(np.int16)]


def gate(given: list, index: int, x: np.ndarray, h: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """A gate's sum, before its activation. c: the cell's state that its peephole sees."""
    total = x @ given[WEIGHTS + index].T + h @ given[RECURRENT + index].T
    peephole = PEEPHOLE_OF.get(index)
    if peephole is not None and given[peephole] is not None:
        total = total + c * given[peephole]
    if given[NORMS + index] is not None:
        centred = total - total.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        total = centred / np.sqrt(variance + VARIANCE_FLOOR) * given[NORMS + index]
    return total + given[BIASES + index]


def clip(x: np.ndarray, limit: float) -> np.ndarray:
    return np.clip(x, -limit, limit) if limit > 0 else x
