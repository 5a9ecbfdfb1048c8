"""Functions of one number: mathematics and activations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import AlphaAttributes, ClampAttributes, GeluAttributes
from tests.support import drawing_int8 as draws
from tests.support import inventory, litert
from tests.support.drawing import generators, shapes
from tests.support.engine import assert_kernel
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

POSITIVE = ("LOG", "LOG1P", "SQRT", "RSQRT", "RECIPROCAL")
IN_LITERT = (
    "ABS NEG SIGN EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND RELU RELU6 RELU_N1_TO_1 LEAKY_RELU ELU GELU "
    "HARD_SWISH LOGISTIC TANH"
).split()
FIXED_OUTPUT = {"LOGISTIC": Quantization(1 / 256, -128), "TANH": Quantization(1 / 128)}


def attributes_of(draw, op):
    if op == "GELU":
        return GeluAttributes(draw(st.booleans()))
    return {"LEAKY_RELU": AlphaAttributes(0.3), "ELU": AlphaAttributes(1.0)}.get(op)


@pytest.mark.parametrize("op", IN_LITERT)
@given(data=st.data())
def test_float_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = (rng.normal(size=(3, 50)) * 10 ** draw(st.floats(-2, 1))).astype(np.float32)
    if op in POSITIVE:
        x = np.abs(x) + np.float32(1e-3)
    if op == "ROUND":
        x = np.round(x * 2) / 2  # many ties
    assert_parity(op, attributes_of(draw, op), [Operand(x)])


@pytest.mark.parametrize("op", ["ABS", "NEG", "SIGN"])
def test_int32_parity(op):
    assert_parity(op, None, [Operand(np.array([-(2**31) + 1, -7, 0, 1, 2**31 - 1], np.int32))])


@given(generators, shapes(1, 4))
def test_not_parity(rng, shape):
    assert_parity("LOGICAL_NOT", None, [Operand(rng.random(shape) < 0.5)])


@pytest.mark.parametrize(
    "op", "ABS EXP LOG RELU RELU6 RELU_N1_TO_1 LEAKY_RELU ELU GELU HARD_SWISH LOGISTIC TANH".split()
)
@given(data=st.data())
def test_int8_parity(op, data):
    draw = data.draw
    given_q = draw(draws.quantizations())
    output = FIXED_OUTPUT.get(op) or draws.output(draw, float(given_q.scale[0]))
    if op == "HARD_SWISH":  # TFLite's int16 pipeline takes no finer output
        finest = float(given_q.scale[0]) / 127
        output = Quantization(max(float(output.scale[0]), finest), output.zero_point)
    assert_table_parity(op, attributes_of(draw, op), given_q, output)


def assert_table_parity(op, attributes, quantization, output):
    """Equal to the bit, but for entries within 2 ulp of a tie in float32.

    The C library's tanhf and erfcf do not round correctly everywhere: about one table in 5000 differs in such an entry.
    """
    inputs = [Operand(draws.EVERY_NUMBER, quantization)]
    (ours,) = run_reference(op, attributes, inputs, [output])
    (theirs,) = litert.run(op, attributes, inputs, [TensorType(None, np.int8, output)])
    differ = ours != theirs
    if op in ("TANH", "GELU") and differ.any():
        real = (draws.EVERY_NUMBER - quantization.zero_point).astype(np.float32) * quantization.scale
        steps = ops.get(op).tabulated(real, attributes) / output.scale
        differ &= np.abs(np.abs(steps % 1) - 0.5) > 4 * np.spacing(np.abs(steps))
    assert not differ.any(), (ours[differ], theirs[differ])
    inventory.record(inventory.LITERT, op, [inputs[0].type], [TensorType(None, np.int8, output)])
    assert_kernel(op, attributes, inputs, [output], [ours])


@pytest.mark.parametrize("op", ["SQRT", "RSQRT"])
@given(data=st.data())
def test_int8_roots_parity(op, data):
    """LiteRT refuses negative numbers."""
    draw, given_q = data.draw, data.draw(draws.quantizations())
    x = draws.EVERY_NUMBER[given_q.zero_point[0] <= draws.EVERY_NUMBER]
    power = 0.5 if op == "SQRT" else -0.5
    output = draws.output(draw, float(given_q.scale[0]) ** power)
    assert_parity(op, None, [Operand(x, given_q)], output)


def test_int8_roots_of_negative_numbers():
    x, q = Operand(np.array([-128, -1, 0], np.int8), Quantization(1.0)), [Quantization(0.1, -20)]
    assert run_reference("SQRT", None, [x], q)[0].tolist() == [-20, -20, -20]
    assert run_reference("RSQRT", None, [x], q)[0].tolist() == [127, 127, 127]


OURS = {
    "EXPM1": np.expm1,
    "LOG1P": lambda x: np.log1p(np.maximum(x, -0.99)),
    "RECIPROCAL": lambda x: 1 / np.where(x == 0, 1, x),
    "SQUARE": np.square,
    "NEG": np.negative,
    "SIGN": np.sign,
    "SIN": np.sin,
    "COS": np.cos,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": np.rint,
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "SOFTPLUS": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    "SWISH": lambda x: x / (1 + np.exp(-x)),
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
}
"""What LiteRT has no int8 kernel of."""


@pytest.mark.parametrize("op", [*OURS, "ERF"])
@pytest.mark.parametrize("quantization", [Quantization(0.03, -128), Quantization(0.05, 0), Quantization(0.01, 127)])
def test_int8_of_ours_is_the_rounded_function(op, quantization):
    special = pytest.importorskip("scipy.special")
    function = OURS.get(op, special.erf)
    x, output = draws.EVERY_NUMBER, Quantization(0.04, 3)
    real = ((x - quantization.zero_point).astype(np.float32) * quantization.scale).astype(np.float64)
    inside = real != 0 if op == "RECIPROCAL" else real > -0.99 if op == "LOG1P" else np.ones(256, bool)
    y = run_reference(op, None, [Operand(x, quantization)], [output])[0]
    expected = np.clip(function(real) / float(output.scale[0]) + 3, -128, 127)
    assert np.abs(y - expected)[inside].max() <= 0.5 + 1e-4


@pytest.mark.parametrize("op", "SELU SOFTPLUS SOFTSIGN SWISH ERF EXPM1 LOG1P RECIPROCAL RELU6 GELU HARD_SWISH".split())
def test_float_as_tensorflow(rng, op):
    tf = pytest.importorskip("tensorflow")
    function = {
        "SELU": tf.nn.selu,
        "SOFTPLUS": tf.nn.softplus,
        "SOFTSIGN": tf.nn.softsign,
        "SWISH": tf.nn.silu,
        "ERF": tf.math.erf,
        "EXPM1": tf.math.expm1,
        "LOG1P": tf.math.log1p,
        "RECIPROCAL": tf.math.reciprocal,
        "RELU6": tf.nn.relu6,
        "GELU": lambda x: tf.nn.gelu(x, False),
        "HARD_SWISH": lambda x: x * tf.nn.relu6(x + 3) / 6,
    }[op]
    x = rng.normal(0, 4, (5, 40))
    if op in POSITIVE:
        x = np.abs(x) + 0.01
    attributes = GeluAttributes() if op == "GELU" else None
    precise = 1e-8 if op == "GELU" else 1e-12  # TensorFlow's root of 1/2 is a float32
    assert_close(run_reference(op, attributes, [Operand(x)])[0], function(x), precise)
    assert_close(run_reference(op, attributes, [Operand(x.astype(np.float32))])[0], function(x.astype(np.float32)))


def test_mish_is_a_composition(rng):
    keras = pytest.importorskip("keras")
    x = rng.normal(0, 4, 100).astype(np.float32)
    inner = run_reference("TANH", None, run_operands("SOFTPLUS", x))[0]
    assert_close(x * inner, np.asarray(keras.activations.mish(x)))


def run_operands(op, x):
    return [Operand(array) for array in run_reference(op, None, [Operand(x)])]


@pytest.mark.parametrize("op", ["LOGISTIC", "SWISH", "SOFTPLUS", "GELU", "TANH", "ELU", "SELU", "ERF"])
def test_saturates_without_overflow(op):
    attributes = {"GELU": GeluAttributes(), "ELU": AlphaAttributes(1.0)}.get(op)
    x = np.array([-1e30, -200, 200, 1e30], np.float32)
    y = run_reference(op, attributes, [Operand(x)])[0]
    assert np.all(np.isfinite(y))
    floor = {"TANH": -1, "ELU": -1, "SELU": -1.7580993, "ERF": -1}.get(op, 0)
    assert y[0] == pytest.approx(floor, abs=1e-6)


def test_clamp():
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    attributes = ClampAttributes(-1.5, 2.0)
    assert run_reference("CLAMP", attributes, [Operand(x)])[0].tolist() == [-1.5, -1.5, -1, 0, 1, 2, 2]
    y = run_reference("CLAMP", attributes, [Operand(draws.EVERY_NUMBER, Quantization(0.1))], [Quantization(0.2, 4)])[0]
    assert (y.min(), y.max()) == (-8 + 4, 10 + 4)
    with pytest.raises(ShapeError, match="clamp"):
        ops.get("CLAMP").check(ClampAttributes(2.0, 1.0))


def test_leaky_slopes_and_elu_scales():
    x = np.array([-2, -1, 0, 3], np.float32)
    assert_close(run_reference("LEAKY_RELU", AlphaAttributes(0.25), [Operand(x)])[0], np.array([-0.5, -0.25, 0, 3]))
    expected = np.array([0.5 * np.expm1(-2), 0.5 * np.expm1(-1), 0, 3])
    assert_close(run_reference("ELU", AlphaAttributes(0.5), [Operand(x)])[0], expected)


def test_infers_the_input():
    assert ops.get("EXP").infer(None, [TensorType((None, 3), np.float32)], [None])[0].shape == (None, 3)
    assert ops.get("EXP").infer(None, [TensorType(None, np.float64)], [None])[0] == TensorType(None, np.float64)
    for op, dtype in [("EXP", np.int32), ("RELU", np.bool_), ("LOGICAL_NOT", np.float32), ("NEG", np.bool_)]:
        with pytest.raises(UnsupportedError, match=op):
            ops.get(op).infer(None, [TensorType((3,), dtype)], [None])


def test_int8_needs_scales():
    with pytest.raises(ShapeError, match="scale"):
        run_reference("TANH", None, [Operand(draws.EVERY_NUMBER, Quantization(0.1))], [None])
    per_channel = Quantization([0.1, 0.2])
    with pytest.raises(ShapeError, match="one scale"):
        run_reference("TANH", None, [Operand(np.zeros((2, 2), np.int8), per_channel)], [Quantization(1 / 128)])
