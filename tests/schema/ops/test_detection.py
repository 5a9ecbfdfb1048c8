"""NON_MAX_SUPPRESSION_V5 and DETECTION_POSTPROCESS: TensorFlow's suppression, ties, and what is refused.

The parity with LiteRT's kernels is in tests/converter/frontends/tflite/test_detection.py.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from schema import ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import DetectionPostprocessAttributes
from tests.support.litert import Operand
from tests.support.parity import assert_close, run_reference

NMS, DETECT = "NON_MAX_SUPPRESSION_V5", "DETECTION_POSTPROCESS"
F = np.float32
SQUARES = np.array([[0, 0, 2, 2], [0, 1, 2, 3], [5, 5, 7, 7], [7, 7, 5, 5]], F)
ATTRIBUTES = DetectionPostprocessAttributes(4, 1, 100, 2, 0.1, 0.5)


def number(value, dtype=F):
    return Operand(np.array(value, dtype))


def suppressed(boxes, scores, most, overlap=0.5, least=0.0, sigma=None):
    inputs = [Operand(np.asarray(boxes, F)), Operand(np.asarray(scores, F)), number(most, np.int32)]
    inputs += [number(overlap), number(least)] + ([] if sigma is None else [number(sigma)])
    indices, kept, count = run_reference(NMS, None, inputs, [None] * 3)
    assert not indices[count:].any() and not kept[count:].any()
    return indices[:count].tolist(), kept[:count]


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_tensorflow(rng, sigma):
    import tensorflow as tf

    corner, size = rng.uniform(0, 1, (60, 2)), rng.uniform(0.2, 0.8, (60, 2))
    boxes = np.concatenate([corner, corner + size], axis=1).astype(F)
    scores = rng.permutation(np.linspace(0, 1, 60)).astype(F)
    # TensorFlow suppresses by an overlap only where no sigma is given.
    overlap = 1.0 if sigma else 0.4
    expected = tf.image.non_max_suppression_with_scores(boxes, scores, 20, overlap, 0.2, sigma / 2)
    indices, kept = suppressed(boxes, scores, 20, overlap, 0.2, sigma / 2)
    assert indices == np.asarray(expected[0]).tolist()
    assert_close(kept, np.asarray(expected[1]), 2e-6)


def test_equal_scores_are_taken_in_order():
    assert suppressed(SQUARES, [1, 1, 1, 1], 4, 0.9)[0] == [0, 1, 2]
    assert suppressed(SQUARES, [1, 1, 1, 2], 4, 0.2)[0] == [3, 0]


def test_corners_come_in_any_order():
    assert suppressed(SQUARES[2:], [0.4, 0.9], 2)[0] == [1]


def test_the_score_must_be_more_and_the_overlap_less():
    """Boxes 0 and 1 share a third of what they cover."""
    assert suppressed(SQUARES, [0.5, 0.6, 0.5, 0.1], 4, F(2) / F(6), 0.5)[0] == [1]
    assert suppressed(SQUARES, [0.5, 0.6, 0.51, 0.1], 4, 0.34, 0.4)[0] == [1, 2, 0]


def test_boxes_without_area_overlap_nothing():
    boxes = np.zeros((3, 4), F)
    assert suppressed(boxes, [3, 2, 1], 3)[0] == [0, 1, 2]


@pytest.mark.parametrize("most", [0, 1, 9])
def test_no_more_than_asked_for(most):
    indices, _ = suppressed(SQUARES[:3], [1, 2, 3], most, 0.9)
    assert indices == [2, 1, 0][:most]


def test_nms_refusals():
    op = ops.get(NMS)
    boxes, scores, most, scalar = (TensorType(s, d) for s, d in (((5, 4), F), ((5,), F), ((), np.int32), ((), F)))
    with pytest.raises(ShapeError, match="numbers of boxes and of scores: 5 and 6"):
        op.infer(None, [boxes, TensorType((6,), F), most, scalar, scalar], [None] * 5)
    with pytest.raises(ShapeError, match="four numbers"):
        op.infer(None, [TensorType((5, 3), F), scores, most, scalar, scalar], [None] * 5)
    with pytest.raises(ShapeError, match="max_output_size is -1"):
        op.infer(None, [boxes, scores, most, scalar, scalar], [None, None, np.int32(-1), None, None])
    with pytest.raises(UnsupportedError, match="has no meaning for scores"):
        op.infer(None, [boxes, TensorType((5,), np.int8), most, scalar, scalar], [None] * 5)


def detect(scores, **changes):
    """Boxes that do not overlap but for the first two, which are the same."""
    count = len(scores)
    anchors = np.stack([np.arange(count) * 10.0, np.zeros(count), np.ones(count), np.ones(count)], axis=1)
    anchors[1] = anchors[0]
    inputs = [Operand(np.zeros((1, count, 4), F)), Operand(np.asarray(scores, F)[None]), Operand(anchors.astype(F))]
    attributes = dataclasses.replace(ATTRIBUTES, **changes)
    boxes, classes, found, number = run_reference(DETECT, attributes, inputs, [None] * 4)
    count = int(number[0]) * (1 if attributes.regular else min(attributes.max_classes_per_detection, 2))
    assert not boxes[0, count:].any() and not found[0, count:].any()
    rows = (boxes[0, :count].mean(axis=1) * 2 / 10).round().astype(int).tolist()
    return list(
        zip(rows, classes[0, :count].astype(int).tolist(), [round(float(v), 4) for v in found[0, :count]], strict=True)
    )


SCORES = [[0.5, 0.7], [0.6, 0.2], [0.3, 0.4], [0.05, 0.08]]


def test_fast_suppresses_by_the_best_class():
    assert detect(SCORES) == [(0, 1, 0.7), (2, 1, 0.4)]
    assert detect(SCORES, max_classes_per_detection=3) == [(0, 1, 0.7), (0, 0, 0.5), (2, 1, 0.4), (2, 0, 0.3)]


def test_regular_suppresses_within_each_class():
    assert detect(SCORES, regular=True) == [(0, 1, 0.7), (0, 0, 0.6), (2, 1, 0.4), (2, 0, 0.3)]
    assert detect(SCORES, regular=True, detections_per_class=1) == [(0, 1, 0.7), (0, 0, 0.6)]
    assert detect(SCORES, regular=True, max_detections=3) == [(0, 1, 0.7), (0, 0, 0.6), (2, 1, 0.4)]


def test_a_background_class_is_left_out():
    background = [[0.99, *row] for row in SCORES]
    assert detect(background) == detect(SCORES)
    assert detect(background, regular=True) == detect(SCORES, regular=True)


def test_decoding():
    """Centers move by the anchor's size, sizes stretch exponentially."""
    inputs = [Operand(np.array([[[1, -2, np.log(2), 0]]], F)), Operand(np.array([[[0.9]]], F))]
    inputs.append(Operand(np.array([[10, 20, 4, 6]], F)))
    attributes = dataclasses.replace(ATTRIBUTES, num_classes=1, y_scale=2.0, x_scale=4.0)
    boxes = run_reference(DETECT, attributes, inputs, [None] * 4)[0]
    assert_close(boxes[0, 0], np.array([12 - 4, 17 - 3, 12 + 4, 17 + 3], F))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_detections", 0),
        ("max_detections", 1 << 21),
        ("max_classes_per_detection", -1),
        ("detections_per_class", 0),
        ("num_classes", 0),
        ("iou_threshold", 0.0),
        ("iou_threshold", 1.5),
        ("y_scale", 0.0),
        ("w_scale", float("nan")),
    ],
)
def test_attributes_that_make_no_sense(field, value):
    with pytest.raises(ShapeError, match=field):
        ops.get(DETECT).check(dataclasses.replace(ATTRIBUTES, **{field: value}))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 9, 4), (2, 9, 2), (9, 4)), "a batch of 2"),
        (((1, 9, 4), (1, 8, 2), (9, 4)), "boxes: 9 and 8"),
        (((1, 9, 4), (1, 9, 2), (8, 4)), "boxes and anchors: 9 and 8"),
        (((1, 9, 3), (1, 9, 2), (9, 4)), "boxes of 3 numbers"),
        (((1, 9, 4), (1, 9, 5), (9, 4)), "5 scores a box, for 2 classes"),
        (((1, 9, 4), (1, 9, 2), (9, 5)), "anchors of 5"),
        (((9, 4), (1, 9, 2), (9, 4)), "inputs of rank"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ShapeError, match=message):
        ops.get(DETECT).infer(ATTRIBUTES, [TensorType(s, F) for s in shapes], [None] * 3)
