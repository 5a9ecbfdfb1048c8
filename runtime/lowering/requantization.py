"""What an int8 kernel needs to turn accumulators into the output's integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runtime.kernels.matmul_parameters import EXACT, FP32_ROUND_EVEN, TFLITE_DOUBLE
from runtime.lowering.base import LoweringContext
from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import activation_range


@dataclass(frozen=True)
class Requantization:
    """rule: one of matmul_parameters. input_zero, output_zero: zero points. low, high: output bounds.

    multipliers: float64, one per output channel.
    """

    rule: int
    input_zero: int
    output_zero: int
    multipliers: np.ndarray
    low: int
    high: int

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """(multipliers, shifts) per channel, of the dtypes that the rule wants; shifts are zeros where it has none."""
        if self.rule == TFLITE_DOUBLE:
            return fixedpoint.quantize_multipliers(self.multipliers)
        dtype = np.float32 if self.rule == FP32_ROUND_EVEN else np.float64
        return self.multipliers.astype(dtype), np.zeros(self.multipliers.size, np.int32)

    def parameters(self) -> dict[str, int]:
        """The slots of a kernel's block that do not depend on channels."""
        return {"rule": self.rule, "zero_point": self.output_zero, "low": self.low, "high": self.high}


def requantization(context: LoweringContext, x: int, weights: int, channels: int) -> Requantization | None:
    """For a sum of products of inputs `x` and `weights`; None where the kernels do not know this quantization."""
    kernel, output = context.inputs[weights], context.outputs[0]
    given, wanted = per_tensor(context.inputs[x]), per_tensor(output)
    if given is None or wanted is None or kernel is None or kernel.quantization is None:
        return None
    if kernel.quantization.zero_point.any() or kernel.quantization.scale.size not in (1, channels):
        return None
    (scale, zero_point), (output_scale, output_zero) = given, wanted
    scales = np.broadcast_to(kernel.quantization.scale.astype(np.float64), channels)
    multipliers = np.float64(scale) * scales / np.float64(output_scale)
    low, high = fixedpoint.activation_bounds(*activation_range(context.attributes), output)
    rule = {"TFLITE_DOUBLE": TFLITE_DOUBLE, "FP32_ROUND_EVEN": FP32_ROUND_EVEN}[context.requantization]
    if rule == TFLITE_DOUBLE and context.node.op == "FULLY_CONNECTED":
        rule = EXACT  # as LiteRT's reference has it, see schema.fixedpoint.requantize
    return Requantization(rule, zero_point, output_zero, multipliers, low, high)


def per_tensor(kind: TensorType | None) -> tuple[np.float32, int] | None:
    """(scale, zero point) of a tensor that has one of each, else None."""
    if kind is None or kind.quantization is None or kind.quantization.per_channel:
        return None
    return kind.quantization.scale[0], int(kind.quantization.zero_point[0])
