"""UNIDIRECTIONAL_SEQUENCE_LSTM of int8 sequences, bit by bit as TFLite's kernel (8x8_16 of kernels/lstm_eval.cc; scales
of kernels/unidirectional_sequence_lstm.cc, arithmetic of kernels/internal/reference/portable_tensor_utils.cc).

int8: x, weights, projection, output and its state. int16: peepholes, layer normalization, the cell's state, whose scale
is a power of two. int32: biases. Gates are sums in int16 with 12 fractional bits; before layer normalization, of the
scale that `gate_scales` tells. What the cells let out to a projection has `hidden_scale` and `hidden_zero_point`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from schema import fixedpoint
from schema.errors import ShapeError
from schema.fixedpoint import multiply_by_quantized_multiplier, rounding_divide_by_pot, saturate, wrap_int32
from schema.graph import TensorType
from schema.ops import fixed_point_16, fixed_point_functions
from schema.ops.base import require
from schema.ops.dtypes import per_tensor, require_dtype
from schema.ops.lstm_operands import (
    BIASES,
    CELL,
    CELL_STATE,
    FORGET,
    GATES,
    INPUT,
    NORMS,
    OUTPUT,
    OUTPUT_STATE,
    PEEPHOLE_OF,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT,
    WEIGHTS,
)

NAME = "UNIDIRECTIONAL_SEQUENCE_LSTM"
GATE_SCALE = 2.0**-12
CELL_EXPONENTS = range(-15, -8)
"""log2 of the cell's scale: tanh is computed with up to 6 integer bits."""
ONE = 32767

INT8, INT16, INT32 = (np.dtype(name) for name in ("int8", "int16", "int32"))
DTYPES = {
    **dict.fromkeys(range(PEEPHOLES), INT8),
    **dict.fromkeys(range(PEEPHOLES, BIASES), INT16),
    **dict.fromkeys([*range(BIASES, PROJECTION), PROJECTION_BIAS], INT32),
    **dict.fromkeys([PROJECTION, OUTPUT_STATE], INT8),
    **dict.fromkeys([CELL_STATE, *range(NORMS, NORMS + 4)], INT16),
}

Multiplier = tuple[int, int]


def check_types(given: list[TensorType | None]) -> None:
    """Raise UnsupportedError for operands that do not go with an int8 sequence."""
    for index, tensor in enumerate(given):
        if tensor is not None:
            require_dtype(NAME, f"operand {index} of an int8 sequence", tensor, {DTYPES[index]})


def check_attributes(attributes: Any, given: list[TensorType | None]) -> None:
    """Raise ShapeError where the scales of what is in between are missing."""
    require(attributes.activation == "TANH", f"int8 cells have the activation TANH, not {attributes.activation}")
    scale = attributes.hidden_scale
    require(0 < scale < math.inf, f"int8 cells need a hidden_scale above 0, not {scale}")
    scales = attributes.gate_scales
    if given[NORMS + FORGET] is not None:
        usable = len(scales) == len(GATES) and all(0 < s < math.inf for s in scales)
        require(usable, f"normalized int8 gates need 4 gate_scales above 0, not {scales}")


def multiplier(*factors: Any, by: Any) -> Multiplier:
    """The product of float32 factors divided by `by`, all in float32, as TFLite computes it."""
    real = np.float32(factors[0])
    for factor in factors[1:]:
        real = np.float32(real * np.float32(factor))
    return fixedpoint.quantize_multiplier(float(np.float32(real / np.float32(by))))


def cell_exponent(scale: np.floating) -> int:
    """log2 of the cell state's scale."""
    exponent = fixedpoint.power_of_two(scale)
    if exponent is None or exponent not in CELL_EXPONENTS:
        raise ShapeError(f"the cell's state needs a scale that is a power of two from 2**-15 to 2**-9, not {scale:g}")
    return exponent


@dataclass(frozen=True)
class Gate:
    """What one gate computes with: weights as int64, with biases that hold the zero points of what they multiply."""

    weights: np.ndarray
    bias: np.ndarray
    scale: Multiplier
    recurrent: np.ndarray
    recurrent_bias: np.ndarray
    recurrent_scale: Multiplier
    peephole: np.ndarray | None
    peephole_scale: Multiplier
    norm: np.ndarray | None
    norm_bias: np.ndarray
    norm_scale: float

    def __call__(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The sum before the activation, int16."""
        total = saturate(multiply_by_quantized_multiplier(x @ self.weights.T + self.bias, *self.scale), INT16)
        again = multiply_by_quantized_multiplier(h @ self.recurrent.T + self.recurrent_bias, *self.recurrent_scale)
        total = saturate(total + again, INT16)
        if self.peephole is not None:
            seen = multiply_by_quantized_multiplier(c * self.peephole, *self.peephole_scale)
            total = saturate(total + seen, INT16)
        return total if self.norm is None else self.normalized(total)

    def normalized(self, total: np.ndarray) -> np.ndarray:
        """Brought to mean 0 and variance 1 with 10 more bits, times the coefficients, plus the bias."""
        assert self.norm is not None
        cells = total.shape[-1]
        mean = _divide(total.sum(axis=-1, keepdims=True) * 1024, cells)
        variance = (total * total).sum(axis=-1, keepdims=True) * ((1 << 20) // cells) - mean * mean
        variance = wrap_int32(_divide(variance, 1 << 20))
        guard = max(1, int(np.float32(10000) * np.float32(self.norm_scale)))
        inverse = fixed_point_functions.inverse_sqrt(np.where(variance < 1, guard, variance))
        scaled = multiply_by_quantized_multiplier(wrap_int32(1024 * total - mean), *inverse)
        biased = wrap_int32(scaled * self.norm + self.norm_bias)
        rounded = _divide(np.where(biased > 0, biased + 512, biased - 512), 1024)
        q31, shift = fixedpoint.quantize_multiplier(self.norm_scale)
        return saturate(multiply_by_quantized_multiplier(rounded, q31, shift + 12), INT16)


def _divide(x: np.ndarray, by: int) -> np.ndarray:
    """Toward zero, as C does."""
    return np.sign(x) * (np.abs(x) // by)


class IntegerLSTM:
    """The layer with all its numbers made ready. given, types: of all operands, None where left out."""

    def __init__(self, attributes: Any, given: list[Any], types: list[Any], outputs: list[TensorType]):
        check_attributes(attributes, types)
        self.attributes, self.given, self.types = attributes, given, types
        self.x_scale, self.x_zero = per_tensor(NAME, "x", types[0])
        state = types[OUTPUT_STATE] or outputs[1]
        self.h_scale, self.h_zero = per_tensor(NAME, "the output's state", state)
        for output in outputs[:2]:
            require(
                per_tensor(NAME, "output", output) == (self.h_scale, self.h_zero),
                f"an int8 output has the quantization of its state: not {output.quantization} and {state.quantization}",
            )
        self.cell_scale, _ = per_tensor(NAME, "the cell's state", types[CELL_STATE] or outputs[2])
        self.exponent = cell_exponent(self.cell_scale)
        self.coupled = given[WEIGHTS + INPUT] is None
        self.gates = {i: self._gate(i) for i in range(len(GATES)) if given[WEIGHTS + i] is not None}
        hidden_scale = float(np.float32(attributes.hidden_scale))
        self.hidden_multiplier = fixedpoint.quantize_multiplier(float(np.float32(2.0**-15 / hidden_scale * 2.0**-15)))
        self.cell_clip = int(np.minimum(np.float32(attributes.cell_clip) / self.cell_scale, ONE))
        self.projection_clip = int(np.minimum(np.float32(attributes.projection_clip) / self.h_scale, 127))

    def _scale(self, index: int) -> np.floating:
        return per_tensor(NAME, f"operand {index}", self.types[index])[0]

    def _gate(self, index: int) -> Gate:
        weights, recurrent = (self.given[first + index].astype(np.int64) for first in (WEIGHTS, RECURRENT))
        bias, norm = self.given[BIASES + index].astype(np.int64), self.given[NORMS + index]
        by = np.float32(GATE_SCALE if norm is None else self.attributes.gate_scales[index])
        peephole = PEEPHOLE_OF.get(index, CELL_STATE)
        there = index != CELL and self.given[peephole] is not None
        return Gate(
            weights,
            (0 if norm is not None else bias) - self.x_zero * weights.sum(axis=1),
            multiplier(self._scale(WEIGHTS + index), self.x_scale, by=by),
            recurrent,
            -self.h_zero * recurrent.sum(axis=1),
            multiplier(self._scale(RECURRENT + index), self.h_scale, by=by),
            self.given[peephole].astype(np.int64) if there else None,
            multiplier(self._scale(peephole), 2.0**self.exponent, by=by) if there else (0, 0),
            None if norm is None else norm.astype(np.int64),
            bias,
            1.0 if norm is None else float(self._scale(NORMS + index)),
        )

    def step(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(h, c) after one step in time."""
        logistic = fixed_point_16.logistic
        forget = logistic(self.gates[FORGET](x, h, c))
        candidate = fixed_point_16.tanh(self.gates[CELL](x, h, c), 3)
        let_in = ONE - forget if self.coupled else logistic(self.gates[INPUT](x, h, c))
        kept = fixed_point_16.wrap(rounding_divide_by_pot(forget * c, 15))
        added = fixed_point_16.wrap(rounding_divide_by_pot(let_in * candidate, 30 + self.exponent))
        c = saturate(kept + added, INT16)
        if self.cell_clip > 0:
            c = np.clip(c, -self.cell_clip, self.cell_clip)
        let_out = logistic(self.gates[OUTPUT](x, h, c))
        product = let_out * fixed_point_16.tanh(c, 15 + self.exponent)
        hidden = multiply_by_quantized_multiplier(product, *self.hidden_multiplier)
        return self.projected(hidden), c

    def projected(self, hidden: np.ndarray) -> np.ndarray:
        """h from what the cells let out. Before a projection LiteRT's kernel turns the sign of the zero point."""
        weights, bias = self.given[PROJECTION], self.given[PROJECTION_BIAS]
        zero_point = self.attributes.hidden_zero_point
        if weights is None:
            return saturate(hidden + zero_point, INT8)
        weights = weights.astype(np.int64)
        total = (saturate(hidden - zero_point, INT8) + zero_point) @ weights.T
        total = total if bias is None else total + bias
        scale = multiplier(self._scale(PROJECTION), self.attributes.hidden_scale, by=self.h_scale)
        h = saturate(multiply_by_quantized_multiplier(wrap_int32(total), *scale) + self.h_zero, INT8)
        return np.clip(h, -self.projection_clip, self.projection_clip) if self.projection_clip > 0 else h
