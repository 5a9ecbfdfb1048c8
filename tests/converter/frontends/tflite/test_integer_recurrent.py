"""Recurrent layers of int8, bit for bit as LiteRT's kernels: LSTM with int16 cells (8x8_16), and SVDF.

LiteRT has no int8 UNIDIRECTIONAL_SEQUENCE_RNN, no bidirectional layers of int8, and no int16 of any: they are refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl
from hypothesis import given
from hypothesis import strategies as st

import converter
import runtime
from converter.frontends import tflite
from schema import FormatError, Quantization, UnsupportedError, XnnError
from tests.converter.frontends.tflite.comparing import assert_same, record
from tests.support.drawing import generators
from tests.support.litert_files import Session
from tests.support.tflite_files import FileBuilder

sizes = st.integers(1, 20)
POWERS = st.builds(lambda e, d: e + d, st.integers(-15, -9), st.sampled_from([0.0, 0.0, 0.0009, -0.0009]))
"""LiteRT takes what is within 0.07 % of a power of two for one."""
SEQUENCE_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"


class Layer(FileBuilder):
    """A file of one layer with random weights, of scales within two orders of magnitude."""

    def __init__(self, rng: np.random.Generator):
        super().__init__()
        self.rng = rng

    def scale(self, low: float, high: float) -> Quantization:
        return Quantization(10 ** self.rng.uniform(low, high))

    def weights(self, *shape: int) -> int:
        return self.constant(self.rng.integers(-127, 128, shape), np.int8, self.scale(-3, -1.5))

    def coefficients(self, *shape: int) -> int:
        return self.constant(self.rng.integers(-32767, 32768, shape), np.int16, self.scale(-6, -4))

    def bias(self, count: int) -> int:
        largest = 1 << self.rng.integers(5, 20)
        return self.constant(self.rng.integers(-largest, largest, count), np.int32, Quantization(1e-4))

    def sequence(self, name: str, shape: tuple[int, ...], scale: float) -> int:
        zero_point = self.rng.choice([-128, 0, 127, int(self.rng.integers(-128, 128))])
        return self.tensor(np.int8, shape, None, Quantization(scale, zero_point), name=name)

    def variable(self, dtype: type, shape: tuple[int, ...], quantization: Quantization) -> int:
        return self.tensor(dtype, shape, None, quantization, isVariable=True)

    def quantization(self, tensor: int) -> Quantization:
        table = self.graph.tensors[tensor].quantization
        return Quantization(table.scale, table.zeroPoint)


@st.composite
def lstms(draw) -> tuple[Layer, int, int]:
    """(layer, input, output): with and without input gates, peepholes, a projection, normalization, clips."""
    b = Layer(draw(generators))
    coupled, peepholes, projection, normalized = (draw(st.booleans()) for _ in range(4))
    time, batch, features, cells = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(sizes), draw(sizes)
    out = draw(sizes) if projection and not peepholes else cells
    scale = b.scale(-2.4, -1.8)
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.timeMajor, options.fusedActivationFunction = draw(st.booleans()), tfl.ActivationFunctionType.TANH
    options.cellClip = draw(st.sampled_from([0.0, 0.3, 1e9]))
    options.projClip = draw(st.sampled_from([0.0, 0.3, 1e9])) if projection else 0.0
    x, y = (
        b.sequence(name, (time, batch, n) if options.timeMajor else (batch, time, n), s)
        for name, n, s in (("x", features, b.scale(-2.5, -1).scale[0]), ("lstm", out, scale.scale[0]))
    )

    def gates(make, *shape: int, there: bool = True) -> list[int]:
        return [make(*shape) if there and not (coupled and i == 0) else -1 for i in range(4)]

    operands = [x, *gates(b.weights, cells, features), *gates(b.weights, cells, out)]
    operands += [*gates(b.coefficients, cells, there=peepholes)[:3], *gates(b.bias, cells)]
    operands += [b.weights(out, cells) if projection else -1, b.bias(out) if projection and draw(st.booleans()) else -1]
    operands.append(b.variable(np.int8, (batch, out), b.quantization(y)))
    operands.append(b.variable(np.int16, (batch, cells), Quantization(2.0 ** draw(POWERS))))
    operands += gates(b.coefficients, cells, there=normalized)
    hidden = Quantization(b.scale(-2.4, -1.8).scale, draw(st.integers(-128, 127))) if projection else b.quantization(y)
    inside = [b.tensor(np.int16, (1,), None, b.scale(-4, -2.5)) for _ in range(4)]
    inside.append(b.tensor(np.int8, (1,), None, hidden, name="hidden"))
    operator = b.operator(SEQUENCE_LSTM, operands, [y], options, version=2)
    operator.intermediates = np.array(inside, np.int32)
    return b, x, y


def numbers(b: Layer, tensor: int) -> np.ndarray:
    return b.rng.integers(-128, 128, tuple(b.graph.tensors[tensor].shape)).astype(np.int8)


@given(lstms())
def test_lstm(layer):
    b, x, y = layer
    assert_same(b.finish([x], [y]), [numbers(b, x)])


@given(st.data())
def test_svdf(data):
    """Three steps of a stream: LiteRT remembers, here the state is handed on."""
    draw, b = data.draw, Layer(data.draw(generators))
    rank, units, memory, batch, features = draw(st.integers(1, 3)), draw(sizes), draw(st.integers(1, 6)), 2, draw(sizes)
    x = b.sequence("x", (batch, features), b.scale(-3, 0).scale[0])
    weights, times = b.weights(units * rank, features), b.coefficients(units * rank, memory)
    x_scale, weight_scale, time_scale = (float(b.quantization(t).scale[0]) for t in (x, weights, times))
    remembered = Quantization(x_scale * weight_scale * features * 0.1 * 10 ** draw(st.floats(-1, 1)))
    largest = float(remembered.scale[0]) * time_scale * 1e9
    y = b.sequence("svdf", (batch, units), largest / 127 * 10 ** draw(st.floats(-3, 0)))
    bias = b.bias(units) if draw(st.booleans()) else -1
    state = b.variable(np.int16, (batch, units * rank * memory), remembered)
    options = tfl.SVDFOptionsT()
    options.rank, options.fusedActivationFunction = rank, tfl.ActivationFunctionType.RELU
    b.operator("SVDF", [x, weights, times, bias, state], [y], options, version=3)
    content = b.finish([x], [y])
    session, model = Session(content), runtime.load(converter.convert(content).bytes, threads=1)
    assert [(i.name, i.dtype) for i in model.inputs] == [("x", np.int8), ("svdf/state", np.int16)]
    memory_of = np.zeros((batch, units * rank * memory), np.int16)
    for _ in range(3):
        value = numbers(b, x)
        found = model(value, memory_of)
        np.testing.assert_array_equal(found["svdf"], session.run([value])[0])
        memory_of = found["svdf/next_state"]
    record(tflite.read(content))


def plain() -> tuple[Layer, int, int, tfl.OperatorT]:
    b = Layer(np.random.default_rng(5))
    x, y = b.sequence("x", (2, 1, 3), 0.01), b.sequence("lstm", (2, 1, 4), 0.01)
    operands = [x, *(b.weights(4, 3) for _ in range(4)), *(b.weights(4, 4) for _ in range(4)), -1, -1, -1]
    operands += [*(b.bias(4) for _ in range(4)), -1, -1]
    operands.append(b.variable(np.int8, (1, 4), b.quantization(y)))
    operands.append(b.variable(np.int16, (1, 4), Quantization(2.0**-12)))
    options = tfl.UnidirectionalSequenceLSTMOptionsT()
    options.timeMajor, options.fusedActivationFunction = True, tfl.ActivationFunctionType.TANH
    operator = b.operator(SEQUENCE_LSTM, operands, [y], options, version=2)
    inside = [b.tensor(np.int8, (1,), None, Quantization(0.01, 3)) for _ in range(5)]
    operator.intermediates = np.array(inside, np.int32)
    b.finish([x], [y])
    return b, x, y, operator


def set_scale(index: int, scale: float):
    def change(b, operator):
        b.graph.tensors[operator.inputs[index]].quantization.scale = [scale]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b, o: setattr(o, "intermediates", None), "0 intermediates"),
        (lambda b, o: setattr(o, "intermediates", [99] * 5), "tensor 99"),
        (lambda b, o: setattr(b.graph.tensors[o.intermediates[4]], "quantization", None), "has not one scale"),
        (lambda b, o: setattr(b.graph.tensors[o.inputs[1]], "type", tfl.TensorType.INT16), "bytes for shape|operand 1"),
        (
            lambda b, o: setattr(b.graph.tensors[o.inputs[12]], "type", tfl.TensorType.INT64),
            "bytes for shape|operand 12",
        ),
    ],
)
def test_refusals(change, message):
    b, _, _, operator = plain()
    tflite.read(b.pack())
    change(b, operator)
    with pytest.raises((FormatError, UnsupportedError), match=message):
        tflite.read(b.pack())


@pytest.mark.parametrize(
    ("change", "message"),
    [(set_scale(19, 0.01), "a power of two from"), (set_scale(19, 2.0**-8), "a power of two from")],
)
def test_scales_that_the_kernel_cannot_take(change, message):
    b, x, _, operator = plain()
    change(b, operator)
    with pytest.raises(XnnError, match=message):
        runtime.load(converter.convert(b.pack()).bytes)(numbers(b, x))


def test_peepholes_before_a_projection_to_another_size():
    """LiteRT's kernel takes the number of outputs for that of cells there."""
    b, _, _, operator = plain()
    inputs = list(operator.inputs)
    inputs[5:9] = [b.weights(4, 2) for _ in range(4)]
    inputs[9:12], inputs[16] = [b.coefficients(4) for _ in range(3)], b.weights(2, 4)
    operator.inputs = inputs
    with pytest.raises(UnsupportedError, match="peepholes beside a projection"):
        tflite.read(b.pack())
