"""What the reader of one TensorFlow node works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from converter.frontends.tensorflow import dtypes
from converter.frontends.tensorflow.attributes import attribute
from converter.frontends.tensorflow.builder import Builder
from schema import ops
from schema.errors import UnsupportedError
from schema.graph import Shape, Tensor

Result = Union[Tensor, "Variable", "Reserved", Sequence[Tensor | None], None]
READERS: dict[str, Callable[[Reading], Result]] = {}


def reads(*names: str) -> Callable[[Callable[[Reading], Result]], Callable[[Reading], Result]]:
    """Register a function as the reader of these TensorFlow ops."""

    def register(function: Callable[[Reading], Result]) -> Callable[[Reading], Result]:
        for name in names:
            READERS[name] = function
        return function

    return register


class Variable:
    """A variable that the program reads; its value is loaded when first needed. remembered: the program assigns it, so
    that its value is an input of the graph.
    """

    def __init__(self, name: str, load: Callable[[], np.ndarray], builder: Builder, remembered: bool = False):
        self.name, self._load, self._builder, self._remembered = name, load, builder, remembered
        self._tensor: Tensor | None = None

    def within(self, builder: Builder) -> Variable:
        """The same variable, read in another graph."""
        if self._remembered:
            raise UnsupportedError(f"variable '{self.name}' is assigned, and read in a branch or loop: not supported")
        return Variable(self.name, lambda: self._builder.value(self.tensor()), builder)  # type: ignore[arg-type,return-value]

    def first(self) -> np.ndarray:
        """The value that the variable has now."""
        return dtypes.from_array(self._load())

    @property
    def input(self) -> Tensor | None:
        """The graph's input that stands for it; None where it is a constant, or never read."""
        return self._tensor if self._remembered else None

    def tensor(self) -> Tensor:
        if self._tensor is None:
            value = self.first()
            if self._remembered:
                self._tensor = self._builder.input(self.name, value.dtype, value.shape)
            else:
                self._tensor = self._builder.constant(value, self.name)
        return self._tensor


class Reserved:
    """A list of tensors to which nothing is written yet.

    length: a scalar. element: the shape of its elements, of which a loop that writes them may tell more.
    """

    def __init__(self, name: str, length: Tensor, element: Shape | None, dtype: np.dtype, builder: Builder):
        self.name, self.length, self.element, self.dtype = name, length, element, dtype
        self._builder = builder

    @property
    def shape(self) -> Shape | None:
        """Of the tensor that holds all elements."""
        count = self._builder.value(self.length)
        return None if self.element is None else (None if count is None else int(count), *self.element)

    def tensor(self, layer: str, like: Tensor | None = None) -> Tensor:
        """Zeros. Sizes of an element that are unknown are those of `like`, or else 1, which broadcasts to what is
        written.
        """
        builder, int32 = self._builder, np.dtype(np.int32)

        def emit(op: str, *inputs: Tensor, **attributes: Any) -> Tensor:
            kind = ops.get(op).Attributes
            given = None if kind is None else kind(**attributes)
            return builder.emit(op, inputs, given, layer, self.name)[0]

        if self.element is None:
            raise UnsupportedError("the shape of a list's elements is unknown")
        one = builder.constant(np.array([1], np.int32), f"{self.name}/one")
        length = emit("RESHAPE", emit("CAST", self.length, dtype=int32), one)
        if like is not None and None in self.element:
            element = emit("SHAPE", like, dtype=int32)
        else:
            element = builder.constant(np.array([size or 1 for size in self.element], np.int32), f"{self.name}/shape")
        zero = builder.constant(np.zeros((), self.dtype), f"{self.name}/zero")
        return emit("FILL", emit("CONCATENATION", length, element, axis=0), zero)


class Reading:
    """One TensorFlow node, its inputs read already.

    name: the node's full name. layer: the Keras layer's name, which all nodes emitted here get.
    """

    def __init__(
        self, builder: Builder, node: Any, name: str, layer: str, inputs: Sequence[Tensor | Variable | Reserved]
    ):
        self.builder, self.node, self.name, self.layer, self.inputs = builder, node, name, layer, inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def tensor(self, index: int) -> Tensor:
        """The input as a tensor; negative indices count from the end."""
        value = self.inputs[index]
        if isinstance(value, Reserved):
            return value.tensor(self.layer)
        if not isinstance(value, Tensor):
            raise UnsupportedError("a variable is used as a tensor")
        return value

    def tensors(self) -> list[Tensor]:
        return [self.tensor(index) for index in range(len(self.inputs))]

    def value(self, index: int, what: str) -> np.ndarray:
        """The input's value. Raises UnsupportedError, calling it `what`, where it depends on the model's inputs."""
        value = self.builder.value(self.tensor(index))
        if value is None:
            raise UnsupportedError(f"{what} must be constant, but depends on the model's inputs")
        return value

    def integer(self, index: int, what: str) -> int:
        return int(np.ravel(self.value(index, what))[0])

    def attribute(self, name: str) -> Any:
        """The node's attribute, or its default."""
        return attribute(self.node, name)

    def shape(self, tensor: Tensor) -> Shape | None:
        return self.builder.type(tensor).shape

    def rank(self, tensor: Tensor) -> int:
        """Raises UnsupportedError where the rank is unknown."""
        shape = self.shape(tensor)
        if shape is None:
            raise UnsupportedError("the input's number of axes is unknown; give the model's inputs a shape")
        return len(shape)

    def constant(self, array: Any, dtype: Any = None) -> Tensor:
        return self.builder.constant(np.asarray(array, dtype), f"{self.name}/constant")

    def emit(self, op: str, *inputs: Tensor | None, **attributes: Any) -> Tensor:
        """A node with one output."""
        (output,) = self.emit_all(op, *inputs, **attributes)
        return output

    def emit_all(self, op: str, *inputs: Tensor | None, **attributes: Any) -> list[Tensor]:
        """A node with any number of outputs."""
        kind = ops.get(op).Attributes
        return self.builder.emit(op, inputs, None if kind is None else kind(**attributes), self.layer, self.name)

    # ---- what many readers need ----

    def transpose(self, tensor: Tensor, *perm: int) -> Tensor:
        return self.emit("TRANSPOSE", tensor, self.constant(perm, np.int32))

    def is_channels_first(self) -> bool:
        """Whether data_format has the channels before the spatial axes."""
        return str(self.attribute("data_format") or "NHWC").startswith("NC")

    def channels_last(self, tensor: Tensor) -> Tensor:
        """The tensor with its axis 1 moved to the end, where the node's data_format has the channels first."""
        if not self.is_channels_first():
            return tensor
        rank = self.rank(tensor)
        return self.transpose(tensor, 0, *range(2, rank), 1)

    def restored(self, tensor: Tensor) -> Tensor:
        """The inverse of `channels_last`."""
        if not self.is_channels_first():
            return tensor
        rank = self.rank(tensor)
        return self.transpose(tensor, 0, rank - 1, *range(1, rank - 1))

    def spatial(self, name: str) -> list[int]:
        """An attribute with one number for each axis (strides, ksize, dilations), those of the spatial axes."""
        numbers = self.attribute(name)
        return self.spatial_of(numbers) if numbers else []

    def spatial_of(self, numbers: Sequence[int]) -> list[int]:
        first = 2 if self.is_channels_first() else 1
        others = (numbers[0], numbers[1] if first == 2 else numbers[-1])
        if any(number != 1 for number in others):
            raise UnsupportedError(f"windows and strides over batch or channels {list(numbers)} are not supported")
        return [int(n) for n in numbers[first : first + len(numbers) - 2]]

    def padding(self) -> dict[str, Any]:
        """The attributes `padding` and `pads` of a window op."""
        padding = self.attribute("padding")
        if padding != "EXPLICIT":
            return {"padding": padding}
        pads = self.attribute("explicit_paddings")
        first = 2 if self.is_channels_first() else 1
        count = len(pads) // 2 - 2
        return {"padding": "EXPLICIT", "pads": tuple(int(n) for n in pads[2 * first : 2 * (first + count)])}
