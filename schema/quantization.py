"""Affine quantization parameters of a tensor: real = scale * (integer - zero_point)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Quantization:
    """Scales and zero points, for the whole tensor (length 1) or for each index along `axis`.

    scale: float32 (1,) or (channels,), finite and > 0. zero_point: int64, same length.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int = 0

    def __init__(self, scale, zero_point=0, axis: int = 0):
        scale = np.atleast_1d(np.asarray(scale, np.float32))
        zero_point = np.broadcast_to(np.atleast_1d(np.asarray(zero_point, np.int64)), scale.shape)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "zero_point", zero_point)
        object.__setattr__(self, "axis", axis)

    @property
    def per_channel(self) -> bool:
        return self.scale.size > 1

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, Quantization)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
            and (self.axis == other.axis or not self.per_channel)
        )

    def __repr__(self) -> str:
        if self.per_channel:
            return f"Quantization({self.scale.size} channels on axis {self.axis})"
        return f"Quantization(scale={self.scale[0]:.6g}, zero_point={self.zero_point[0]})"

    def broadcast(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """(scale, zero_point) shaped so that they broadcast against a tensor of that rank."""
        if not self.per_channel:
            return self.scale.reshape(()), self.zero_point.reshape(())
        shape = [1] * rank
        shape[self.axis] = self.scale.size
        return self.scale.reshape(shape), self.zero_point.reshape(shape)
