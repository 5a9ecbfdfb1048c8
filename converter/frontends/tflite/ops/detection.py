"""What stands behind object detectors: boxes that overlap a better one are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from converter.frontends.tflite.flexbuffer import read_map
from converter.frontends.tflite.reading import Reading, reads
from schema.errors import FormatError
from schema.graph import Tensor

FLOAT32 = np.dtype(np.float32)
NAMES = {
    "max_detections": "max_detections",
    "max_classes_per_detection": "max_classes_per_detection",
    "detections_per_class": "detections_per_class",
    "num_classes": "num_classes",
    "score_threshold": "nms_score_threshold",
    "iou_threshold": "nms_iou_threshold",
    "y_scale": "y_scale",
    "x_scale": "x_scale",
    "h_scale": "h_scale",
    "w_scale": "w_scale",
    "regular": "use_regular_nms",
}
"""Our attributes and the options of the custom operator."""
DEFAULTS: dict[str, int | float] = {"detections_per_class": 100, "use_regular_nms": 0}
WHOLE = frozenset("max_detections max_classes_per_detection detections_per_class num_classes".split())


@reads("NON_MAX_SUPPRESSION_V4")
def non_max_suppression_v4(reading: Reading) -> None:
    operands = reading.operands(5)
    if len(reading.outputs) != 2:
        raise FormatError(f"{len(reading.outputs)} outputs; there are two")
    indices, count = reading.outputs
    scores = Tensor(f"{reading.layer}/scores", FLOAT32)
    reading.emit("NON_MAX_SUPPRESSION_V5", operands, [indices, scores, count])


@reads("NON_MAX_SUPPRESSION_V5")
def non_max_suppression_v5(reading: Reading) -> None:
    reading.emit("NON_MAX_SUPPRESSION_V5", reading.operands(6))


@reads("TFLite_Detection_PostProcess")
def detection_postprocess(reading: Reading) -> None:
    options = DEFAULTS | read_map(reading.custom_options)
    missing = ", ".join(name for name in NAMES.values() if name not in options)
    if missing:
        raise FormatError(f"its options lack {missing}")
    attributes: dict[str, Any] = {ours: _float32(options[theirs]) for ours, theirs in NAMES.items()}
    for name in WHOLE:
        if not abs(attributes[name]) < 1 << 31 or attributes[name] % 1:
            raise FormatError(f"{name} is {attributes[name]}")
        attributes[name] = int(attributes[name])
    attributes["regular"] = bool(attributes["regular"])
    reading.emit("DETECTION_POSTPROCESS", [_real(reading, t) for t in reading.operands(3)], **attributes)


def _float32(number: int | float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _real(reading: Reading, tensor: Tensor) -> Tensor:
    """TFLite's kernel takes quantized boxes and scores for the real numbers that they stand for."""
    return tensor if tensor.dtype == FLOAT32 else reading.intermediate("DEQUANTIZE", [tensor], FLOAT32)
