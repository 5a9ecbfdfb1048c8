"""Operands of linear ops for tests of kernels."""

import numpy as np
from hypothesis import strategies as st

from schema import Quantization, Tensor

ACTIVATIONS = st.sampled_from(
    [
        {"activation": "NONE"},
        {"activation": "RELU"},
        {"activation": "RELU6"},
        {"activation": "RELU_N1_TO_1"},
        {"activation": "CLAMP", "clamp_min": -0.5, "clamp_max": 2.0},
    ]
)


def float_operands(rng, x_shape, w_shape, out, with_bias):
    x = rng.standard_normal(x_shape).astype(np.float32)
    constants = [Tensor.from_array("w", rng.standard_normal(w_shape).astype(np.float32))]
    if with_bias:
        constants.append(Tensor.from_array("b", rng.standard_normal(out).astype(np.float32)))
    return x, Tensor("x", np.float32, x_shape), constants, Tensor("y", np.float32)


def int8_operands(rng, x_shape, w_shape, out, with_bias, axis=0, per_channel=True, zeros=(3, -5), depth=9):
    """As float_operands, with scales that make use of the whole output range, some channels beyond it."""
    x = rng.integers(-128, 128, x_shape, dtype=np.int8)
    w = rng.integers(-127, 128, w_shape, dtype=np.int8)
    channels = out if per_channel else 1
    scales = (0.02 * 10.0 ** rng.uniform(-2, 0.5, channels)).astype(np.float32)
    x_scale, y_scale = np.float32(0.05), np.float32(0.05 * 0.02 * 70 * np.sqrt(depth))
    constants = [Tensor.from_array("w", w, Quantization(scales, 0, axis))]
    if with_bias:
        bias = rng.integers(-(2**14), 2**14, out, dtype=np.int32)
        constants.append(Tensor.from_array("b", bias, Quantization(x_scale * scales, 0, 0)))
    return (
        x,
        Tensor("x", np.int8, x_shape, Quantization(x_scale, zeros[0])),
        constants,
        Tensor("y", np.int8, None, Quantization(y_scale, zeros[1])),
    )
