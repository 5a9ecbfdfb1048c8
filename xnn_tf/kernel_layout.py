"""Which axes of a weight are outputs, which inputs, and which neither: patterns and channel scales need one view."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class KernelLayout:
    """How a weight becomes an array (positions, outputs, inputs).

    Positions are what is left: the spatial taps of a convolution, the batch axes of an einsum.

    Attributes:
        shape: the weight's shape.
        outputs: its output axes, slowest first; non-negative.
        inputs: its input axes, slowest first; none for a depthwise kernel, where each output has one input.
    """

    shape: tuple[int, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]

    @classmethod
    def last_is_output(cls, shape: tuple[int, ...]) -> "KernelLayout":
        """(…, inputs, outputs): Dense, convolutions, recurrent kernels, embeddings."""
        return cls(shape, (len(shape) - 1,), (len(shape) - 2,))

    @classmethod
    def transposed_conv(cls, shape: tuple[int, ...]) -> "KernelLayout":
        """(…, outputs, inputs)."""
        return cls(shape, (len(shape) - 2,), (len(shape) - 1,))

    @classmethod
    def depthwise(cls, shape: tuple[int, ...]) -> "KernelLayout":
        """(…, channels, multiplier): output k·multiplier + m reads input k only."""
        return cls(shape, (len(shape) - 2, len(shape) - 1), ())

    @classmethod
    def einsum(cls, shape: tuple[int, ...], equation: str) -> "KernelLayout":
        """The second operand of an einsum such as `abc,cde->abde`: c is input, d and e are outputs."""
        operands, _, result = equation.replace(" ", "").replace(".", "").partition("->")
        source, _, kernel = operands.partition(",")
        outputs = tuple(axis for axis, label in enumerate(kernel) if label in result and label not in source)
        inputs = tuple(axis for axis, label in enumerate(kernel) if label in source and label not in result)
        return cls(shape, outputs, inputs)

    @property
    def _positions(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.outputs + self.inputs)

    @property
    def view_shape(self) -> tuple[int, int, int]:
        """(positions, outputs, inputs)."""
        sizes = [math.prod(self.shape[axis] for axis in axes) for axes in (self._positions, self.outputs, self.inputs)]
        return sizes[0], sizes[1], sizes[2]

    def to_view(self, weight: np.ndarray) -> np.ndarray:
        """The weight as (positions, outputs, inputs)."""
        return weight.transpose(self._positions + self.outputs + self.inputs).reshape(self.view_shape)

    def from_view(self, view: np.ndarray) -> np.ndarray:
        """The inverse of `to_view`."""
        order = self._positions + self.outputs + self.inputs
        return view.reshape([self.shape[axis] for axis in order]).transpose(np.argsort(order))
