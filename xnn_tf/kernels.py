"""Finds the kernels of a model, in nested, subclassed and wrapped layers too."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from xnn_tf.keras_compat import (
    Variable,
    require_tensorflow_keras,
    sublayers,
    trainable_weights_of,
    weight_name,
    weights_of,
)
from xnn_tf.kernel_layout import KernelLayout

_KERAS_MODULES = ("keras.", "tf_keras.")
_TRANSPOSED = {"BaseConvTranspose", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"}
_DEPTHWISE = {"BaseDepthwiseConv", "DepthwiseConv"}


@dataclass(frozen=True, eq=False)
class Kernel:
    """One weight that multiplies activations.

    Attributes:
        path: names of the containers and the layer, joined by `/`, without the model's own: `encoder/dense`.
        weight: the weight's name in its layer: `kernel`.
        variable: the variable of its Keras.
        layout: its output and input axes.
        pruned_by_default: whether it is a Conv or Dense kernel (depthwise ones are not).
        trainable: whether training changes it.
    """

    path: str
    weight: str
    variable: Variable
    layout: KernelLayout
    pruned_by_default: bool
    trainable: bool

    @property
    def name(self) -> str:
        """`encoder/dense/kernel`."""
        return f"{self.path}/{self.weight}" if self.path else self.weight


def find_kernels(model: Any) -> list[Kernel]:
    """Lists the kernels of all layers, in their order; shared ones once. Embeddings and recurrent kernels are kernels.

    Layers that are not built yet have none.

    Raises:
        InputError: no Keras model.
        UnsupportedError: Keras on another backend than TensorFlow.
    """
    require_tensorflow_keras(model)
    trainable = {id(variable) for variable in trainable_weights_of(model)}
    return list(_kernels_in(model, "", trainable, set()))


@contextmanager
def as_they_were(kernels: Sequence[Kernel]) -> Iterator[list[np.ndarray]]:
    """Gives the kernels' values, and assigns them again behind the block, whatever was assigned or raised in it."""
    present = [kernel.variable.numpy() for kernel in kernels]
    try:
        yield present
    finally:
        for kernel, weight in zip(kernels, present, strict=True):
            kernel.variable.assign(weight)


def _kernels_in(layer: Any, path: str, trainable: set[int], seen: set[int]) -> Iterator[Kernel]:
    children = list(sublayers(layer))
    inner = {id(variable) for child in children for variable in weights_of(child)}
    for variable in weights_of(layer):
        weight = weight_name(variable)
        if id(variable) in inner or id(variable) in seen or not _is_kernel(layer, weight, variable):
            continue
        seen.add(id(variable))
        layout, by_default = _classify(layer, weight, tuple(int(size) for size in variable.shape))
        yield Kernel(path, weight, variable, layout, by_default, id(variable) in trainable)
    for child in children:
        yield from _kernels_in(child, f"{path}/{child.name}" if path else child.name, trainable, seen)


def _is_kernel(layer: Any, weight: str, variable: Variable) -> bool:
    """Whether a weight is a float matrix or more.

    Keras' own layers name theirs; those of others may be called anything.
    """
    if len(variable.shape) < 2 or "float" not in getattr(variable.dtype, "name", variable.dtype):
        return False
    if type(layer).__module__.startswith(_KERAS_MODULES):
        return "kernel" in weight or "embedding" in weight
    return "bias" not in weight and weight != "mask"


def _classify(layer: Any, weight: str, shape: tuple[int, ...]) -> tuple[KernelLayout, bool]:
    """The axes of a weight, and whether it is a Conv or Dense kernel, by the Keras classes of its layer."""
    classes = {cls.__name__ for cls in type(layer).__mro__ if cls.__module__.startswith(_KERAS_MODULES)}
    if weight == "depthwise_kernel" or (weight == "kernel" and classes & _DEPTHWISE):
        return KernelLayout.depthwise(shape), False
    if weight == "kernel" and classes & _TRANSPOSED:
        return KernelLayout.transposed_conv(shape), True
    if weight == "kernel" and "EinsumDense" in classes:
        return KernelLayout.einsum(shape, layer.equation), True
    by_default = weight == "pointwise_kernel" or (weight == "kernel" and bool(classes & {"BaseConv", "Conv", "Dense"}))
    return KernelLayout.last_is_output(shape), by_default
