"""UNIDIRECTIONAL_SEQUENCE_RNN, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF: Keras's layers, states, and what is refused.

The parity with LiteRT's kernels is in tests/converter/frontends/tflite/test_recurrent.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from schema import ShapeError, TensorType, ops
from schema.ops.attributes import LSTMAttributes, SequenceRNNAttributes, SVDFAttributes
from schema.ops.unidirectional_sequence_lstm import (
    BIASES,
    CELL_STATE,
    NORMS,
    OUTPUT_STATE,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT,
    WEIGHTS,
)
from tests.support.litert import Operand
from tests.support.parity import assert_close, run_reference

BATCH, TIME, FEATURES, CELLS = 2, 6, 3, 5
RNN, LSTM = "UNIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM"


def operand(rng, *shape):
    return Operand(rng.normal(0, 0.6, shape).astype(np.float32))


def lstm_operands(rng, peepholes=False, out=CELLS):
    given: list[Operand | None] = [None] * 24
    given[0] = operand(rng, BATCH, TIME, FEATURES)
    for gate in range(4):
        given[WEIGHTS + gate] = operand(rng, CELLS, FEATURES)
        given[RECURRENT + gate] = operand(rng, CELLS, out)
        given[BIASES + gate] = operand(rng, CELLS)
    if peepholes:
        given[PEEPHOLES : PEEPHOLES + 3] = [operand(rng, CELLS) for _ in range(3)]
    given[OUTPUT_STATE], given[CELL_STATE] = operand(rng, BATCH, out), operand(rng, BATCH, CELLS)
    return given


def rnn_operands(rng):
    shapes = [(BATCH, TIME, FEATURES), (CELLS, FEATURES), (CELLS, CELLS), (CELLS,), (BATCH, CELLS)]
    return [operand(rng, *shape) for shape in shapes]


def test_keras_lstm(rng):
    import keras

    given = lstm_operands(rng)
    layer = keras.layers.LSTM(CELLS, return_sequences=True, return_state=True)
    layer.build((BATCH, TIME, FEATURES))
    kernel, recurrent, bias = (
        np.concatenate([given[first + gate].value for gate in range(4)]) for first in (WEIGHTS, RECURRENT, BIASES)
    )
    layer.set_weights([kernel.T, recurrent.T, bias])
    states = [given[OUTPUT_STATE].value, given[CELL_STATE].value]
    expected = layer(given[0].value, initial_state=states)
    for ours, theirs in zip(run_reference(LSTM, LSTMAttributes(), given, [None] * 3), expected, strict=True):
        assert_close(ours, np.asarray(theirs), 2e-6)


@pytest.mark.parametrize("activation", ["TANH", "RELU", "LOGISTIC"])
def test_keras_rnn(rng, activation):
    import keras

    given = rnn_operands(rng)
    name = {"TANH": "tanh", "RELU": "relu", "LOGISTIC": "sigmoid"}[activation]
    layer = keras.layers.SimpleRNN(CELLS, activation=name, return_sequences=True, return_state=True)
    layer.build((BATCH, TIME, FEATURES))
    layer.set_weights([given[1].value.T, given[2].value.T, given[3].value])
    expected = layer(given[0].value, initial_state=given[4].value)
    results = run_reference(RNN, SequenceRNNAttributes(activation=activation), given, [None] * 2)
    for ours, theirs in zip(results, expected, strict=True):
        assert_close(ours, np.asarray(theirs), 2e-6)


@pytest.mark.parametrize("time_major", [False, True])
def test_two_halves_make_a_whole(rng, time_major):
    """The last state of the first half is the first one of the second."""

    def part(x, first, last):
        value = x.value[:, first:last]
        return Operand(np.ascontiguousarray(value.swapaxes(0, 1) if time_major else value))

    cases = [
        (LSTM, LSTMAttributes(time_major), lstm_operands(rng, peepholes=True), (OUTPUT_STATE, CELL_STATE)),
        (RNN, SequenceRNNAttributes(time_major), rnn_operands(rng), (4,)),
    ]
    for op, attributes, given, states in cases:
        quantizations = [None] * (1 + len(states))
        x = given[0]
        whole = run_reference(op, attributes, [part(x, 0, TIME), *given[1:]], quantizations)
        first = run_reference(op, attributes, [part(x, 0, 2), *given[1:]], quantizations)
        again = [part(x, 2, TIME), *given[1:]]
        for index, state in zip(states, first[1:], strict=True):
            again[index] = Operand(state)
        second = run_reference(op, attributes, again, quantizations)
        joined = np.concatenate([first[0], second[0]], axis=0 if time_major else 1)
        assert_close(joined, whole[0])
        for ours, theirs in zip(second[1:], whole[1:], strict=True):
            assert_close(ours, theirs)


def test_a_state_left_out_is_zeros(rng):
    given = lstm_operands(rng)
    zeros = [*given]
    given[OUTPUT_STATE] = given[CELL_STATE] = None
    for index, size in ((OUTPUT_STATE, CELLS), (CELL_STATE, CELLS)):
        zeros[index] = Operand(np.zeros((BATCH, size), np.float32))
    ours, theirs = (run_reference(LSTM, LSTMAttributes(), g, [None] * 3) for g in (given, zeros))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_steps(rng):
    given = rnn_operands(rng)
    given[0] = Operand(np.zeros((BATCH, 0, FEATURES), np.float32))
    y, state = run_reference(RNN, SequenceRNNAttributes(), given, [None] * 2)
    assert y.shape == (BATCH, 0, CELLS)
    np.testing.assert_array_equal(state, given[4].value)


def types(given):
    return [None if o is None else o.type for o in given]


@pytest.mark.parametrize(
    ("index", "shape", "message"),
    [
        (WEIGHTS + 1, None, "the forget gate has no weights"),
        (RECURRENT + 2, None, "the cell gate has no recurrent weights"),
        (BIASES + 3, None, "the output gate has no bias"),
        (WEIGHTS, None, "the input gate has recurrent weights"),
        (RECURRENT, None, "the input gate has no recurrent weights"),
        (PROJECTION_BIAS, (CELLS,), "a projection bias without weights"),
        (NORMS + 1, (CELLS,), "some gates are normalized"),
        (WEIGHTS + 3, (CELLS, FEATURES + 1), "features"),
        (RECURRENT + 1, (CELLS, CELLS + 1), "outputs"),
        (PEEPHOLES + 1, (CELLS + 1,), "cells"),
        (OUTPUT_STATE, (BATCH + 1, CELLS), "batch"),
        (CELL_STATE, (BATCH, CELLS, 1), "not of rank 2"),
        (PROJECTION, (4, CELLS), "outputs"),
        (0, (BATCH, FEATURES), "not of rank 3"),
    ],
)
def test_lstm_operands_that_do_not_fit(rng, index, shape, message):
    given = lstm_operands(rng)
    given[index] = None if shape is None else operand(rng, *shape)
    with pytest.raises(ShapeError, match=message):
        ops.get(LSTM).infer(LSTMAttributes(), types(given), [None] * 24)


@pytest.mark.parametrize("field", ["cell_clip", "projection_clip"])
@pytest.mark.parametrize("value", [-1.0, np.inf])
def test_clips(field, value):
    with pytest.raises(ShapeError, match=field):
        ops.get(LSTM).check(LSTMAttributes(**{field: value}))


def test_svdf_is_a_convolution_in_time(rng):
    x, features, times = (rng.normal(size=s).astype(np.float32) for s in ((9, FEATURES), (4, FEATURES), (4, 3)))
    state, results = np.zeros((1, 12), np.float32), []
    for step in x:
        given = [Operand(a) for a in (step[None], features, times)] + [None, Operand(state)]
        y, state = run_reference("SVDF", SVDFAttributes(2), given, [None] * 2)
        results.append(y[0])
    projected = np.concatenate([np.zeros((2, 4)), x @ features.T])
    expected = [(projected[t : t + 3].T * times).sum(1).reshape(2, 2).sum(1) for t in range(9)]
    assert_close(np.array(results), np.array(expected), 2e-6)


def test_svdf_refusals():
    op, f = ops.get("SVDF"), np.float32
    with pytest.raises(ShapeError, match="the rank is 0"):
        op.check(SVDFAttributes(0))
    x, features, times = (TensorType(s, f) for s in ((2, 3), (4, 3), (4, 5)))
    with pytest.raises(ShapeError, match="4 filters do not have rank 3"):
        op.infer(SVDFAttributes(3), [x, features, times], [None] * 3)
    with pytest.raises(ShapeError, match="state: 20 and 21 differ"):
        op.infer(SVDFAttributes(2), [x, features, times, None, TensorType((2, 21), f)], [None] * 5)
    with pytest.raises(ShapeError, match="units: 2 and 3 differ"):
        op.infer(SVDFAttributes(2), [x, features, times, TensorType((3,), f)], [None] * 4)
