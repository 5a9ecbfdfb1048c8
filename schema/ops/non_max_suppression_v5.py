"""NON_MAX_SUPPRESSION_V5: (boxes (n, 4), scores (n,), max_output_size, iou_threshold, score_threshold, soft_nms_sigma?)
-> (indices int32 (max_output_size,), their scores, how many there are int32).

The best box is taken, again and again, that scores more than score_threshold and overlaps none taken before by
iou_threshold or more; of equal scores the lower index. With a sigma > 0, scores shrink by exp(-iou**2 / (2 sigma)) for
each box taken before (Bodla et al. 2017). What is not taken is 0 (TFLite reference/non_max_suppression.h).
"""

from __future__ import annotations

import heapq

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.boxes import intersection_over_union, ordered
from schema.ops.dtypes import require_dtype
from schema.ops.operands import integer, merge, require_one_element

FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)


class NonMaxSuppression(Op):
    name = "NON_MAX_SUPPRESSION_V5"
    inputs = (5, 6)
    outputs = 3

    @classmethod
    def infer(cls, attributes, inputs, values):
        boxes, scores, _, *numbers = inputs
        for what, tensor in (("boxes", boxes), ("scores", scores), *(("a threshold", n) for n in numbers)):
            if tensor is not None:
                require_dtype(cls.name, what, tensor, {FLOAT32})
        for number in numbers:
            if number is not None:
                require_one_element(number, "a threshold")
        require(boxes.rank in (None, 2) and scores.rank in (None, 1), f"boxes {boxes} and scores {scores}")
        if boxes.shape is not None:
            require(boxes.shape[1] in (None, 4), f"boxes are {boxes}, not four numbers each")
            if scores.shape is not None:
                merge(boxes.shape[0], scores.shape[0], "numbers of boxes and of scores")
        most = integer(cls.name, inputs, values, 2, "max_output_size")
        require(most is None or most >= 0, f"max_output_size is {most}")
        return [TensorType((most,), INT32), TensorType((most,), FLOAT32), TensorType((), INT32)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        boxes, scores, most, overlap, least, sigma = (*arrays, None)[:6]
        most, overlap, least = (np.ravel(a)[0] for a in (most, overlap, least))
        sigma = np.float32(0) if sigma is None else np.ravel(sigma)[0]
        taken, found = select(ordered(boxes), scores, int(most), overlap, least, sigma)
        indices, kept = np.zeros(int(most), INT32), np.zeros(int(most), FLOAT32)
        indices[: len(taken)], kept[: len(taken)] = taken, found
        return [indices, kept, np.array(len(taken), INT32)]


def select(
    boxes: np.ndarray, scores: np.ndarray, most: int, overlap: np.float32, least: np.float32, sigma: np.float32
) -> tuple[list[int], list[np.float32]]:
    """The boxes that are taken, and the scores that they then have."""
    # Of each candidate: its score, its index, and how many of those taken have lowered its score.
    waiting = [(-scores[i], int(i), 0) for i in np.flatnonzero(scores > least)]
    heapq.heapify(waiting)
    taken: list[int] = []
    found: list[np.float32] = []
    scale = np.float32(-0.5) / sigma if sigma > 0 else np.float32(0)
    while waiting and len(taken) < most:
        negative, index, seen = heapq.heappop(waiting)
        overlaps = intersection_over_union(boxes[index], boxes[taken[seen:][::-1]])
        if (overlaps >= overlap).any():
            continue
        score = -negative
        for shared in overlaps if sigma > 0 else ():
            score = score * np.exp(scale * shared * shared)
        if score == -negative:
            taken.append(index)
            found.append(score)
        elif score > least:
            heapq.heappush(waiting, (-score, index, len(taken)))
    return taken, found
