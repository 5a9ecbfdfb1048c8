"""Float layers that go through time, against LiteRT's kernels after a reset of their variables."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl
from hypothesis import given
from hypothesis import strategies as st

import converter
import runtime
from converter.frontends import tflite
from schema import FormatError, Quantization, UnsupportedError, evaluate
from tests.converter.frontends.tflite.comparing import assert_same, record
from tests.support.drawing import generators
from tests.support.litert_files import Session, relative_difference
from tests.support.tflite_files import FileBuilder

TIME, FEATURES, CELLS, OUT = 5, 3, 7, 4
ACTIVATIONS = ("TANH", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


class Layer(FileBuilder):
    """A file of one layer with random weights."""

    def __init__(self, rng: np.random.Generator, batch: int = 2):
        super().__init__()
        self.rng, self.batch = rng, batch

    def weights(self, *shape: int) -> int:
        return self.constant(self.rng.normal(0, 0.5, shape), np.float32)

    def variable(self, *shape: int) -> int:
        return self.tensor(np.float32, shape, isVariable=True)

    def sequence(self, time_major: bool, features: int) -> int:
        shape = (TIME, self.batch, features) if time_major else (self.batch, TIME, features)
        return self.tensor(np.float32, shape)

    def numbers(self, tensor: int) -> np.ndarray:
        return self.rng.normal(size=tuple(self.graph.tensors[tensor].shape)).astype(np.float32)

    def rnn(self) -> list[int]:
        """Operands of one direction."""
        return [
            self.weights(CELLS, FEATURES),
            self.weights(CELLS, CELLS),
            self.weights(CELLS),
            self.variable(self.batch, CELLS),
        ]

    def lstm(self, coupled=False, peepholes=False, projection=False, projection_bias=False) -> list[int]:
        """Operands 1 to 17 of one direction."""
        out = OUT if projection else CELLS
        gates = [-1 if coupled and i == 0 else self.weights(CELLS, FEATURES) for i in range(4)]
        again = [-1 if coupled and i == 0 else self.weights(CELLS, out) for i in range(4)]
        seen = [self.weights(CELLS) if peepholes and not (coupled and i == 0) else -1 for i in range(3)]
        biases = [-1 if coupled and i == 0 else self.weights(CELLS) for i in range(4)]
        project = [self.weights(OUT, CELLS) if projection else -1, self.weights(OUT) if projection_bias else -1]
        return [*gates, *again, *seen, *biases, *project]

    def states(self, out: int) -> list[int]:
        return [self.variable(self.batch, out), self.variable(self.batch, CELLS)]


def activation_of(name: str) -> int:
    return getattr(tfl.ActivationFunctionType, name)


@given(generators, st.integers(1, 4), st.booleans(), st.sampled_from(ACTIVATIONS))
def test_rnn(rng, batch, time_major, activation):
    b = Layer(rng, batch)
    x, y = b.sequence(time_major, FEATURES), b.sequence(time_major, CELLS)
    options = tfl.SequenceRNNOptionsT()
    options.timeMajor, options.fusedActivationFunction = time_major, activation_of(activation)
    b.operator("UNIDIRECTIONAL_SEQUENCE_RNN", [x, *b.rnn()], [y], options)
    assert_same(b.finish([x], [y]), [b.numbers(x)], tolerance=3e-6)


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("auxiliary", [False, True])
def test_bidirectional_rnn(rng, time_major, merged, auxiliary):
    b = Layer(rng)
    x = b.sequence(time_major, FEATURES)
    other = b.sequence(time_major, FEATURES) if auxiliary else -1
    outputs = [b.sequence(time_major, 2 * CELLS)] if merged else [b.sequence(time_major, CELLS) for _ in range(2)]
    options = tfl.BidirectionalSequenceRNNOptionsT()
    options.timeMajor, options.mergeOutputs = time_major, merged
    options.fusedActivationFunction = activation_of("TANH")
    b.operator("BIDIRECTIONAL_SEQUENCE_RNN", [x, *b.rnn(), *b.rnn(), other, -1, -1], outputs, options)
    inputs = [x, other] if auxiliary else [x]
    assert_same(b.finish(inputs, outputs), [b.numbers(i) for i in inputs], tolerance=3e-6)


LSTMS = {
    "plain": {},
    "coupled": dict(coupled=True),
    "peepholes": dict(peepholes=True),
    "coupled peepholes": dict(coupled=True, peepholes=True),
    "projection": dict(projection=True),
    "projection with bias": dict(projection=True, projection_bias=True, peepholes=True),
}


@pytest.mark.parametrize("name", LSTMS)
@given(generators, st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_lstm(name, rng, batch, time_major, clip):
    b = Layer(rng, batch)
    out = OUT if LSTMS[name].get("projection") else CELLS
    x, y = b.sequence(time_major, FEATURES), b.sequence(time_major, out)
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.timeMajor, options.fusedActivationFunction = time_major, activation_of("TANH")
    options.cellClip, options.projClip = clip, clip if out == OUT else 0.0
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *b.lstm(**LSTMS[name]), *b.states(out)], [y], options)
    assert_same(b.finish([x], [y]), [b.numbers(x)], tolerance=3e-6)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "NONE"])
def test_lstm_with_layer_normalization(rng, coupled, activation):
    """Without an activation LiteRT takes what its scratch memory held."""
    b = Layer(rng)
    x, y = b.sequence(False, FEATURES), b.sequence(False, CELLS)
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = activation_of(activation)
    norms = [-1 if coupled and i == 0 else b.weights(CELLS) for i in range(4)]
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *b.lstm(coupled=coupled), *b.states(CELLS), *norms], [y], options)
    assert_same(b.finish([x], [y]), [b.numbers(x)], tolerance=5e-6)


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("auxiliary", [False, True])
def test_bidirectional_lstm(rng, time_major, merged, auxiliary):
    # LiteRT reads beyond its buffers where it merges more than one sequence that are not time-major.
    b = Layer(rng, 1 if merged and not time_major else 2)
    x = b.sequence(time_major, FEATURES)
    other = b.sequence(time_major, FEATURES) if auxiliary else -1
    outputs = [b.sequence(time_major, 2 * CELLS)] if merged else [b.sequence(time_major, CELLS) for _ in range(2)]
    options = tfl.BidirectionalSequenceLSTMOptionsT()
    options.timeMajor, options.mergeOutputs = time_major, merged
    options.fusedActivationFunction = activation_of("TANH")
    operands = [x, *b.lstm(), *b.lstm(peepholes=True), *b.states(CELLS), *b.states(CELLS), other, *[-1] * 8]
    b.operator("BIDIRECTIONAL_SEQUENCE_LSTM", operands, outputs, options)
    inputs = [x, other] if auxiliary else [x]
    assert_same(b.finish(inputs, outputs), [b.numbers(i) for i in inputs], tolerance=3e-6)


def test_every_run_begins_anew(rng):
    """LiteRT's second run goes on where the first ended; ours does not."""
    b = Layer(rng)
    x, y = b.sequence(False, FEATURES), b.sequence(False, CELLS)
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = activation_of("TANH")
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *b.lstm(), *b.states(CELLS)], [y], options)
    content, value = b.finish([x], [y]), b.numbers(x)
    session, model = Session(content), runtime.load(converter.convert(content).bytes)
    first = session.run([value])
    assert relative_difference(session.run([value]), first) > 1e-2
    for _ in range(2):
        assert relative_difference([model(value)], first) < 3e-6


def test_weights_of_a_dynamic_range(rng):
    """int8 weights keep their integers; LiteRT rounds the activations as well."""
    b = Layer(rng)
    x, y = b.sequence(False, FEATURES), b.sequence(False, CELLS)
    operands = b.lstm()
    for operand in operands[:8]:
        shape = tuple(b.graph.tensors[operand].shape)
        tensor = b.constant(rng.integers(-127, 128, shape), np.int8, Quantization(0.005))
        operands[operands.index(operand)] = tensor
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = activation_of("TANH")
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *operands, *b.states(CELLS)], [y], options)
    content, value = b.finish([x], [y]), b.numbers(x)
    graph = tflite.read(content)
    assert graph.nodes[0].inputs[1].constant.values.dtype == np.int8
    assert relative_difference(evaluate.run(graph, [value]), Session(content).run([value])) < 0.02


@given(generators, st.integers(1, 4), st.integers(1, 3), st.booleans(), st.sampled_from(["NONE", "RELU"]))
def test_svdf(rng, batch, rank, bias, activation):
    """Six steps of a stream: LiteRT remembers, here the state is handed on."""
    b = Layer(rng, batch)
    memory, units = rng.integers(1, 6), rng.integers(1, 20)
    x, y = b.tensor(np.float32, (b.batch, FEATURES), name="x"), b.tensor(np.float32, (b.batch, units), name="svdf")
    operands = [b.weights(units * rank, FEATURES), b.weights(units * rank, memory), b.weights(units) if bias else -1]
    state = b.variable(b.batch, units * rank * memory)
    options = tfl.SVDFOptionsT()
    options.rank, options.fusedActivationFunction = rank, activation_of(activation)
    b.operator("SVDF", [x, *operands, state], [y], options)
    content = b.finish([x], [y])
    session, model = Session(content), runtime.load(converter.convert(content).bytes)
    assert [i.name for i in model.inputs] == ["x", "svdf/state"]
    assert [o.name for o in model.outputs] == ["svdf", "svdf/next_state"]
    remembered = np.zeros((b.batch, units * rank * memory), np.float32)
    for _ in range(6):
        value = b.numbers(x)
        found = model(value, remembered)
        remembered = found["svdf/next_state"]
        largest = max(float(np.abs(remembered).max()), float(np.abs(found["svdf"]).max()))  # of what cancels out
        assert np.abs(found["svdf"] - session.run([value])[0]).max() < 1e-6 * largest
    record(tflite.read(content))


def test_refusals(rng):
    b = Layer(rng)
    x, y = b.sequence(False, FEATURES), b.sequence(False, CELLS)
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    operands = [x, *b.lstm(), *b.states(CELLS)]
    operator = b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], options)
    options.fusedActivationFunction = activation_of("SIGN_BIT")
    with pytest.raises(UnsupportedError, match="the activation SIGN_BIT"):
        tflite.read(b.finish([x], [y]))
    options.fusedActivationFunction = activation_of("TANH")
    operator.inputs = [*operands[:2], -1, *operands[3:]]
    with pytest.raises(FormatError, match="LSTM 't1': the forget gate has no weights"):
        tflite.read(b.pack())
    b.graph.tensors[x].type = tfl.TensorType.INT16
    with pytest.raises(UnsupportedError, match="recurrent layers of int16"):
        tflite.read(b.pack())


def test_a_variable_that_another_op_reads(rng):
    b = Layer(rng)
    x, y = b.variable(2, 3), b.tensor(np.float32, (2, 3))
    b.operator("NEG", [x], [y])
    with pytest.raises(FormatError, match="0 inputs; there are 1"):
        tflite.read(b.finish([], [y]))
