"""Stored operands of linear ops: weights as int8 with one scale per output channel, bias as int32, or int64 beside
int16 activations.

A kernel with few distinct values (clustered while training) keeps them: its base values are quantized with one scale
for the whole tensor, and each channel's factor (a folded BatchNorm) goes into that channel's scale. Zeros stay zeros in
every case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converter.quantize.kernel_grid import TOLERANCE, integers_on_grid
from converter.quantize.moments import Moments
from converter.quantize.rounding import mean_error, round_compensated
from converter.quantize.rules import INT8, INT16
from schema.fixedpoint import round_half_away
from schema.graph import Constant, Tensor
from schema.quantization import Quantization

LIMIT = 127  # weights are symmetric, -128 is not used
CODEBOOK = 2 * 127  # distinct values beside zero: as many as int8 has
SAMPLE = 1 << 14  # elements that tell a clustered kernel from others before all are sorted
BIASES = {INT8: (np.dtype(np.int32), 2**30), INT16: (np.dtype(np.int64), 2**46)}
"""By the dtype of activations: that of a bias, and half of what sums hold, so that products can be added to it."""


@dataclass
class Channels:
    """int8 = base * sign of the channel; real = scale of the channel * int8. distinct: base values of a clustered
    kernel.
    """

    base: np.ndarray  # int8, of the weights' shape
    scale: np.ndarray  # float64 (channels,), > 0
    sign: np.ndarray  # int8 (channels,), 1 or -1
    distinct: int | None


@dataclass
class QuantizedLinear:
    """Operands of an int8 linear op. distinct: how many base values a clustered kernel has, None for other kernels."""

    weights: Tensor
    bias: Tensor | None
    distinct: int | None


def quantize_linear(
    weights: Tensor,
    axis: int,
    bias: Tensor | None,
    input_scale: float,
    output_scale: float,
    moments: Moments | None = None,
    dtype: np.dtype = INT8,
    trained: bool = False,
) -> QuantizedLinear:
    """int8 weights with channels along `axis`, and a bias of scale input_scale x weight scale.

    moments: of the input. With them rounding errors are made to cancel, and what is left of their mean goes into the
    bias. Where a channel's bias would not fit, the channel's weight scale is raised until it does: such weights
    hardly count. dtype: of the activations. trained: the layer may be quantize-aware, and its weights integers times a
    step already, which are then kept.
    """
    assert weights.constant is not None
    channels = clustered(weights.constant, axis)
    if trained and (channels is None or not _equals(channels, weights.value, axis)):
        channels = on_grid(weights.value, axis) or channels
    channels = channels or per_channel(weights.value, axis, moments)
    # A channel without weights is its bias: any scale serves that leaves the bias a few more bits than the output has.
    channels.scale[~channels.base.any(axis=_others(axis, channels.base.ndim))] = output_scale / input_scale / 256
    real_bias = None if bias is None else bias.value.astype(np.float64)
    if real_bias is not None:
        _raise_scales(channels, weights.value, axis, np.abs(real_bias) / (input_scale * BIASES[dtype][1]))
    scale = channels.scale.astype(np.float32)
    if real_bias is not None and moments is not None:
        stored = channels.base * _along(channels.sign * scale, axis, channels.base.ndim)
        real_bias += mean_error(weights.value, stored, moments)
    quantized = Tensor.from_array(weights.name, channels.base, Quantization(scale, 0, axis))
    if (channels.sign < 0).any():  # kept apart, so that the stored values stay few
        quantized.set_constant(Constant(channels.base, channels.sign.astype(np.float32), axis))
    if bias is not None and real_bias is not None:
        bias = _quantize_bias(bias.name, real_bias, np.float32(input_scale) * scale, dtype)
    return QuantizedLinear(quantized, bias, channels.distinct)


def _others(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i != axis)


def _along(vector: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


def _to_int8(real: np.ndarray, scale: np.ndarray, axis: int) -> np.ndarray:
    ratio = real / _along(scale.astype(np.float32), axis, real.ndim)
    return np.clip(round_half_away(ratio), -LIMIT, LIMIT).astype(np.int8)


def per_channel(real: np.ndarray, axis: int, moments: Moments | None = None) -> Channels:
    """Each channel's largest magnitude becomes 127. moments: of what the weights meet, to round them by."""
    largest = np.abs(real).max(axis=_others(axis, real.ndim), initial=0).astype(np.float64)
    # Below that the float32 quotient would not be a normal number: such weights are zero.
    scale = np.where(largest > LIMIT * 1e-30, largest / LIMIT, 1.0)
    base = _to_int8(real, scale, axis) if moments is None else round_compensated(real, scale, moments, LIMIT)
    return Channels(base, scale, np.ones(scale.size, np.int8), None)


def on_grid(real: np.ndarray, axis: int) -> Channels | None:
    """The integers of a kernel that was quantized while it was trained, None for other kernels."""
    found = integers_on_grid(real, axis)
    if found is None:
        return None
    base, step = found
    return Channels(base, np.where(step > 0, step, 1.0), np.ones(step.size, np.int8), None)


def _equals(channels: Channels, real: np.ndarray, axis: int) -> bool:
    """Whether these integers are the weights, and not only near to them."""
    step = _along(channels.scale * channels.sign, axis, real.ndim)
    return bool((np.abs(real / step - channels.base) < TOLERANCE).all())


def _raise_scales(channels: Channels, real: np.ndarray, axis: int, needed: np.ndarray) -> None:
    """Requantize the channels whose scale is below what is needed."""
    raised = np.flatnonzero(needed > channels.scale)
    if raised.size:
        channels.scale[raised] = needed[raised]
        chosen = (slice(None),) * axis + (raised,)
        integers = _to_int8(real[chosen], needed[raised], axis)
        channels.base[chosen] = integers * _along(channels.sign[raised], axis, real.ndim)


def clustered(constant: Constant, axis: int) -> Channels | None:
    """The base values of a clustered kernel by one scale, integers as they are; None for other kernels."""
    values = np.asarray(constant.values)
    if constant.channel_scale is not None and constant.axis != axis:
        return None
    stored_integers = values.dtype.kind in "iu" and values.min(initial=0) >= -LIMIT and values.max(initial=0) <= LIMIT
    sample = np.ravel(values)[:: max(values.size // SAMPLE, 1)]
    if not stored_integers and np.unique(sample).size > CODEBOOK + 1:  # zero does not count
        return None
    base, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    nonzero = base != 0
    # Weights that nobody clustered are all different.
    if not stored_integers and nonzero.sum() > min(CODEBOOK, counts[nonzero].sum() // 2):
        return None
    step, integers = (1.0, base) if stored_integers else _base_scale(base, counts)
    factor = (
        np.ones(values.shape[axis]) if constant.channel_scale is None else constant.channel_scale.astype(np.float64)
    )
    quantized = integers.astype(np.int8)[inverse].reshape(values.shape)
    quantized *= _along(factor != 0, axis, values.ndim)
    sign = np.where(factor < 0, -1, 1).astype(np.int8)
    return Channels(quantized, np.where(factor != 0, step * np.abs(factor), 1.0), sign, int(base.size))


def _base_scale(base: np.ndarray, counts: np.ndarray) -> tuple[float, np.ndarray]:
    """(scale, integers) that keep most values distinct and, among those, have the smallest summed squared error."""
    largest = np.abs(base.astype(np.float64)).max(initial=0)
    if largest == 0:
        return 1.0, base
    steps = largest / np.arange(LIMIT, LIMIT // 2, -1)
    integers = round_half_away(base / steps[:, np.newaxis])
    lost = [base.size - np.unique(row).size for row in integers]
    error = ((integers * steps[:, np.newaxis] - base) ** 2 * counts).sum(axis=1)
    best = min(range(steps.size), key=lambda i: (lost[i], error[i]))
    return float(steps[best]), integers[best]


def _quantize_bias(name: str, real: np.ndarray, scale: np.ndarray, dtype: np.dtype) -> Tensor:
    stored, limit = BIASES[dtype]
    integers = np.clip(round_half_away(real / scale.astype(np.float64)), 1 - 2 * limit, 2 * limit - 1)
    return Tensor.from_array(name, integers.astype(stored), Quantization(scale, 0, 0))
