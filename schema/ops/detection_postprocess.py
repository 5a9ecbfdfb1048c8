"""DETECTION_POSTPROCESS: (box encodings (1, n, 4 or more), class scores (1, n, classes), anchors (n, 4)) -> (boxes
(1, m, 4), classes (1, m), scores (1, m), how many there are (1,)), m being max_detections * max_classes_per_detection.
All are float32; classes count from 0, a background class before the num_classes left out.

Box i is anchor i (center y, center x, height, width) moved by encoding / scale of its size and stretched by
exp(encoding / scale). Boxes that overlap a better one by more than iou_threshold are dropped: by the best class's
score alone, or (regular) within each class, of which then the best max_detections remain (TFLite
kernels/detection_postprocess.cc). What is not detected is 0.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import DetectionPostprocessAttributes
from schema.ops.base import Op, require
from schema.ops.boxes import intersection_over_union
from schema.ops.dtypes import require_dtype
from schema.ops.operands import merge

FLOAT32 = np.dtype(np.float32)
MOST = 1 << 20


class DetectionPostprocess(Op):
    name = "DETECTION_POSTPROCESS"
    Attributes = DetectionPostprocessAttributes
    inputs = (3, 3)
    outputs = 4

    @classmethod
    def check(cls, attributes):
        a = attributes
        for name in ("max_detections", "max_classes_per_detection", "detections_per_class", "num_classes"):
            require(0 < getattr(a, name) <= MOST, f"{name} is {getattr(a, name)}; it can be 1 to {MOST}")
        require(a.max_detections * a.max_classes_per_detection <= MOST, f"more than {MOST} detections")
        for name in ("y_scale", "x_scale", "h_scale", "w_scale"):
            require(getattr(a, name) > 0, f"{name} is {getattr(a, name)}")
        require(0 < a.iou_threshold <= 1, f"iou_threshold is {a.iou_threshold}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        for tensor in inputs:
            require_dtype(cls.name, "input", tensor, {FLOAT32})
        ranks = [tensor.rank for tensor in inputs]
        require(all(r in (None, want) for r, want in zip(ranks, (3, 3, 2), strict=True)), f"inputs of rank {ranks}")
        shapes = [t.shape or (None,) * rank for t, rank in zip(inputs, (3, 3, 2), strict=True)]
        (batch, count, numbers), (same, scored, classes), (anchors, four) = shapes
        require(merge(batch, same, "batches") in (None, 1), f"a batch of {batch or same}; there can be one image")
        merge(merge(count, scored, "boxes"), anchors, "boxes and anchors")
        require(numbers is None or numbers >= 4, f"boxes of {numbers} numbers")
        require(four in (None, 4), f"anchors of {four} numbers")
        known = attributes.num_classes
        require(classes in (None, known, known + 1), f"{classes} scores a box, for {known} classes")
        most = attributes.max_detections * attributes.max_classes_per_detection
        return [TensorType(shape, FLOAT32) for shape in ((1, most, 4), (1, most), (1, most), (1,))]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        encodings, scores, anchors = arrays
        boxes = decode(encodings[0, :, :4], anchors, attributes)
        scores = scores[0, :, scores.shape[2] - attributes.num_classes :]
        most = attributes.max_detections * attributes.max_classes_per_detection
        found = (regular if attributes.regular else fast)(boxes, scores, attributes)
        count = len(found)
        results = [np.zeros((1, most, 4), FLOAT32), np.zeros((1, most), FLOAT32), np.zeros((1, most), FLOAT32)]
        rows, classes = (np.array([pair[i] for pair in found], np.int64) for i in (0, 1))
        results[0][0, :count], results[1][0, :count] = boxes[rows], classes
        results[2][0, :count] = scores[rows, classes]
        each = 1 if attributes.regular else min(attributes.max_classes_per_detection, attributes.num_classes)
        return [*results, np.array([count // each], FLOAT32)]


def decode(encodings: np.ndarray, anchors: np.ndarray, a: DetectionPostprocessAttributes) -> np.ndarray:
    """Corners (n, 4)."""
    scales = np.array([a.y_scale, a.x_scale, a.h_scale, a.w_scale], np.float32)
    with np.errstate(all="ignore"):
        moved = encodings / scales
        centers = moved[:, :2] * anchors[:, 2:] + anchors[:, :2]
        halves = np.float32(0.5) * np.exp(moved[:, 2:]) * anchors[:, 2:]
        return np.concatenate([centers - halves, centers + halves], axis=1)


def descending(scores: np.ndarray) -> np.ndarray:
    """Indices from the highest score to the lowest, equal ones in order."""
    return np.argsort(-scores, kind="stable")


def suppress(boxes: np.ndarray, scores: np.ndarray, a: DetectionPostprocessAttributes, most: int) -> list[int]:
    """The boxes that remain of one class, best first."""
    kept = np.flatnonzero(scores >= a.score_threshold)
    kept = kept[descending(scores[kept])]
    selected: list[int] = []
    while kept.size and len(selected) < most:
        best, kept = int(kept[0]), kept[1:]
        selected.append(best)
        kept = kept[intersection_over_union(boxes[best], boxes[kept]) <= a.iou_threshold]
    return selected


def fast(boxes: np.ndarray, scores: np.ndarray, a: DetectionPostprocessAttributes) -> list[tuple[int, int]]:
    """(box, class) of each detection: a box's best classes one after another."""
    each = min(a.max_classes_per_detection, a.num_classes)
    remaining = suppress(boxes, scores.max(axis=1, initial=-np.inf), a, a.max_detections)
    return [(box, int(c)) for box in remaining for c in descending(scores[box])[:each]]


def regular(boxes: np.ndarray, scores: np.ndarray, a: DetectionPostprocessAttributes) -> list[tuple[int, int]]:
    """(box, class) of each detection, best first."""
    most = min(a.detections_per_class, a.max_detections)
    found = [(box, c) for c in range(a.num_classes) for box in suppress(boxes, scores[:, c], a, most)]
    order = descending(np.array([scores[pair] for pair in found], np.float32))
    return [found[i] for i in order[: a.max_detections]]
