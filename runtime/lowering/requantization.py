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
    given, kernel, output = context.inputs[x], context.inputs[weights], context.outputs[0]
    if not _per_tensor(given) or not _per_tensor(output) or kernel is None or kernel.quantization is None:
        return None
    if kernel.quantization.zero_point.any() or kernel.quantization.scale.size not in (1, channels):
        return None
    assert given is not None
    assert given.quantization is not None
    assert output.quantization is not None
    scales = np.broadcast_to(kernel.quantization.scale.astype(np.float64), channels)
    multipliers = np.float64(given.quantization.scale[0]) * scales / np.float64(output.quantization.scale[0])
    low, high = fixedpoint.activation_bounds(*activation_range(context.attributes), output)
    rule = {"TFLITE_DOUBLE": TFLITE_DOUBLE, "FP32_ROUND_EVEN": FP32_ROUND_EVEN}[context.requantization]
    if rule == TFLITE_DOUBLE and context.node.op == "FULLY_CONNECTED":
        rule = EXACT  # as LiteRT's reference has it, see schema.fixedpoint.requantize
    return Requantization(
        rule, int(given.quantization.zero_point[0]), int(output.quantization.zero_point[0]), multipliers, low, high
    )


def _per_tensor(kind: TensorType | None) -> bool:
    return kind is not None and kind.quantization is not None and not kind.quantization.per_channel
