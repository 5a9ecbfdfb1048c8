"""Dense layers and convolutions, with the BatchNorm and the activation behind them.

BatchNorm multiplies each output channel by a number. A step for each channel is multiplied by the same number, so that
the integers of the folded kernel are those of the kernel itself: folding (B. Jacob et al., CVPR 2018, section 3.2)
needs no second convolution to know the batch's statistics. They normalize while training; outside of it, and when
frozen, the moving averages do, as in the file.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow as tf

from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.folding import Normalization, with_bias
from xnn_tf.quantization.integers import Exact, Products, whole, wide
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategies.functions import FUSED, function_name, range_of_function
from xnn_tf.quantization.strategy import Strategy, register_strategy
from xnn_tf.quantization.tables import function_of


@register_strategy
class LinearStrategy(Strategy):
    """Rounds the kernel for each output channel, the bias to the accumulators' step, and the result once, behind the
    fused activation; another activation is computed of a result that is rounded before and after it.
    """

    fuses = True

    @classmethod
    def takes(cls, layer: Any) -> bool:
        """Whether the layer is computed with integers."""
        if getattr(layer, "data_format", "channels_last") != "channels_last":
            return False
        return type(layer).__name__ != "EinsumDense" or all(k.layout.view_shape[0] == 1 for k in find_kernels(layer))

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self._first = add_ranges(self, wrapper)
        self._normalization = Normalization(wrapper, self.settings) if wrapper.batch_norm is not None else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        variable = kernel_of(layer)
        kernel, steps = wrapper.quantized(variable)
        scale = None if sources[0] is None else scale_of(sources[0])[0]
        step = None if scale is None else scale * channels(layer, steps)

        def products(x: Any, weights: Any, **attributes: Any) -> Any:
            with wrapper.swapped([(variable, weights)], activation=None, bias=None, use_bias=False, **attributes):
                return layer.call(x)

        def integers() -> Any:
            return products(whole(inputs, scale), whole(kernel, steps), _compute_dtype_object=tf.float64)

        result, exactly = products(inputs, kernel), None
        if self.is_wide(sources[:1], self._first):
            largest = largest_of(layer, kernel)
            exactly = Products(
                partial(integers_of, result, step) if training else integers,
                scale,
                largest,
                tf.round(largest / channels(layer, steps)),
                once="Dense" in type(layer).__name__,
            )
        finish = with_bias if self._normalization is None else self._normalization
        y, exact = finish(result, layer.bias, step, training, exactly)
        return finished(self, wrapper, y, exact, training)


def integers_of(result: Any, step: Any) -> Any:
    """The integers that float32 sums stand for: while training, when sums of the integers themselves would be a second
    convolution, in float64.
    """
    return tf.round(wide(result) / wide(step))


def add_ranges(strategy: Strategy, wrapper: Any) -> str:
    """Those of the results of a linear layer. Returns the name of the one before its activation."""
    name = function_name(wrapper.layer.activation)
    if name not in FUSED:
        strategy.add_range(wrapper, "before_activation")
    fixed = range_of_function(name, strategy.settings.activations)
    if fixed is None:
        strategy.add_range(wrapper, "output")
    else:
        strategy.ranges["output"] = fixed
    return "output" if name in FUSED else "before_activation"


def finished(strategy: Strategy, wrapper: Any, y: Any, exact: Exact | None, training: bool) -> Any:
    """The result of a linear layer: with its activation, rounded. exact: see `with_bias`."""
    layer = wrapper.layer
    name = function_name(layer.activation)
    if name not in FUSED:
        before = strategy.ranges["before_activation"]
        z = before(y, training, exact)
        of_integers = None
        if strategy.is_wide([before]):
            scale, _ = scale_of(before)
            of_integers = function_of(name, layer.activation, whole(z, scale), scale)
        return strategy.output(layer.activation(z), training, of_integers)

    def activated(x: Any) -> Any:
        for function in (layer.activation, wrapper.activation):
            x = x if function is None else function(x)
        return x

    return strategy.output(activated(y), training, None if exact is None else lambda scale: activated(exact(scale)))


def kernel_of(layer: Any) -> Any:
    """The kernel's variable."""
    (kernel,) = find_kernels(layer)
    return kernel.variable


def channels(layer: Any, steps: Any) -> Any:
    """Steps of a kernel as they broadcast against the result: (channels,), or the last axes of an EinsumDense."""
    (kernel,) = find_kernels(layer)
    sizes = [int(steps.shape[axis]) for axis in kernel.layout.outputs]
    return tf.reshape(steps, sizes if type(layer).__name__ == "EinsumDense" else [-1])


def largest_of(layer: Any, kernel: Any) -> Any:
    """The largest magnitude in each channel of a kernel, of the shape of `channels`."""
    (found,) = find_kernels(layer)
    inner = [axis for axis in range(len(found.layout.shape)) if axis not in found.layout.outputs]
    return channels(layer, tf.reduce_max(tf.abs(kernel), axis=inner, keepdims=True))
