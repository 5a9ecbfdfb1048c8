"""Dense layers and convolutions, with the BatchNorm and the activation behind them.

BatchNorm multiplies each output channel by a number. A step for each channel is multiplied by the same number, so that
the integers of the folded kernel are those of the kernel itself: folding (B. Jacob et al., CVPR 2018, section 3.2)
needs no second convolution to know the batch's statistics. They normalize while training; outside of it, and when
frozen, the moving averages do, as in the file.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.fake_quantize import round_bias
from xnn_tf.quantization.folding import Normalization
from xnn_tf.quantization.integers import accumulated
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategies.functions import FUSED, function_name, range_of_function
from xnn_tf.quantization.strategy import Strategy, register_strategy


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
        name = function_name(wrapper.layer.activation)
        if name not in FUSED:
            self.add_range(wrapper, "before_activation")
        fixed = range_of_function(name, self.settings.activations)
        if fixed is None:
            self.add_range(wrapper, "output")
        else:
            self.ranges["output"] = fixed
        self._normalization = Normalization(wrapper, self.settings) if wrapper.batch_norm is not None else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        variable = kernel_of(layer)
        kernel, steps = wrapper.quantized(variable)
        of_channel = channels(layer, steps)
        step = None if sources[0] is None else scale_of(sources[0])[0] * of_channel

        def linear(bias: Any) -> Any:
            swaps = [(variable, kernel)]
            gone: dict[str, Any] = {"activation": None}
            if bias is not None:
                swaps.append((layer.bias, bias))
            else:
                gone.update(bias=None, use_bias=False)
            with wrapper.swapped(swaps, **gone):
                return layer.call(inputs)

        if self._normalization is not None:
            y = self._normalization(lambda: linear(layer.bias), lambda: linear(None), layer.bias, step, training)
        elif layer.bias is None:
            y = accumulated(linear(None), None, step, training)
        elif training or step is None:
            y = linear(layer.bias if step is None else round_bias(layer.bias, step))
        else:
            y = accumulated(linear(None), layer.bias, step, training)
        name = function_name(layer.activation)
        if name not in FUSED:
            return self.output(layer.activation(self.ranges["before_activation"](y, training)), training)
        if layer.activation is not None:
            y = layer.activation(y)
        if wrapper.activation is not None:
            y = wrapper.activation(y)
        return self.output(y, training)


def kernel_of(layer: Any) -> Any:
    """The kernel's variable."""
    (kernel,) = find_kernels(layer)
    return kernel.variable


def channels(layer: Any, steps: Any) -> Any:
    """Steps of a kernel as they broadcast against the result: (channels,), or the last axes of an EinsumDense."""
    (kernel,) = find_kernels(layer)
    sizes = [int(steps.shape[axis]) for axis in kernel.layout.outputs]
    return tf.reshape(steps, sizes if type(layer).__name__ == "EinsumDense" else [-1])
