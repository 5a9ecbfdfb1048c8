"""Depthwise convolutions on the engine, against the references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Node
from schema.ops.attributes import Conv2DAttributes
from tests.support.engine import compare
from tests.support.operands import ACTIVATIONS, float_operands, int8_operands


@st.composite
def cases(draw):
    """(input shape, weights shape 1HWC, attributes)."""
    channels, multiplier = draw(st.sampled_from([1, 2, 3, 8, 16, 17, 40])), draw(st.sampled_from([1, 1, 2, 3]))
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    fields = {name: draw(st.integers(1, 3)) for name in ("stride_h", "stride_w", "dilation_h", "dilation_w")}
    fields |= {"padding": draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"])), **draw(ACTIVATIONS)}
    if fields["padding"] == "EXPLICIT":
        fields["pads"] = tuple(draw(st.integers(0, 7)) for _ in range(4))  # windows of padding alone, too
    size = [(k - 1) * fields[f"dilation_{a}"] + 1 + draw(st.integers(0, 6)) for k, a in zip(kernel, "hw", strict=True)]
    x_shape = (draw(st.integers(1, 2)), *size, channels)
    return x_shape, (1, *kernel, channels * multiplier), Conv2DAttributes(**fields)


@given(case=cases(), seed=st.integers(0, 99), with_bias=st.booleans(), threads=st.sampled_from([1, 2]))
def test_float(case, seed, with_bias, threads):
    x_shape, w_shape, attributes = case
    x, input_, constants, y = float_operands(np.random.default_rng(seed), x_shape, w_shape, w_shape[3], with_bias)
    node = Node("DEPTHWISE_CONV_2D", [input_, *constants], [y], attributes)
    compare([node], [input_], [y], [x], rtol=1e-5, threads=threads)


@given(
    case=cases(),
    seed=st.integers(0, 99),
    with_bias=st.booleans(),
    per_channel=st.booleans(),
    zeros=st.sampled_from([(0, 0), (-128, -128), (127, 127), (3, -5)]),
    rule=st.sampled_from(["TFLITE_DOUBLE", "FP32_ROUND_EVEN"]),
)
def test_int8(case, seed, with_bias, per_channel, zeros, rule):
    x_shape, w_shape, attributes = case
    rng = np.random.default_rng(seed)
    x, input_, constants, y = int8_operands(
        rng, x_shape, w_shape, w_shape[3], with_bias, 3, per_channel, zeros, w_shape[1] * w_shape[2]
    )
    node = Node("DEPTHWISE_CONV_2D", [input_, *constants], [y], attributes)
    compare([node], [input_], [y], [x], requantization=rule)


@pytest.mark.parametrize("kernel", [(3, 1), (1, 3), (1, 2)])
@pytest.mark.parametrize("make", [float_operands, int8_operands])
def test_kernels_that_are_not_square_with_strides(kernel, make, rng):
    x, input_, constants, y = make(rng, (1, 8, 8, 2), (1, *kernel, 2), 2, True)
    if make is int8_operands:
        x, input_, constants, y = int8_operands(rng, (1, 8, 8, 2), (1, *kernel, 2), 2, True, 3)
    attributes = Conv2DAttributes(stride_h=2, stride_w=2, padding="SAME")
    node = Node("DEPTHWISE_CONV_2D", [input_, *constants], [y], attributes)
    compare([node], [input_], [y], [x], rtol=0 if make is int8_operands else 1e-5)
