"""RANGE: (start, limit, delta) -> start, start + delta, ... before limit (tf.range).

Floats are added up one after another in their own dtype, as TF and TFLite do.
"""

from __future__ import annotations

import math

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import INTEGERS, require_dtype, require_same_dtype
from schema.ops.operands import require_one_element, steps

ALLOWED = INTEGERS.union(map(np.dtype, (np.float32, np.float64)))


class Range(Op):
    name = "RANGE"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], ALLOWED)
        require_same_dtype(cls.name, *inputs)
        for operand in inputs:
            require_one_element(operand, "start, limit or delta")
        size = None if any(v is None for v in values) else count(*values)
        return [TensorType((size,), inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        start, _, delta = (np.ravel(a)[0] for a in arrays)
        addends = np.full(count(*arrays), delta)
        addends[:1] = start
        return [np.add.accumulate(addends, dtype=start.dtype)]


def count(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> int:
    """How many numbers the range has."""
    first, last, step = (np.ravel(a)[0] for a in (start, limit, delta))
    require(step != 0, "a step of 0")
    if step.dtype.kind == "i":
        return steps(int(first), int(last), int(step))
    with np.errstate(all="ignore"):
        numbers = float((last - first) / step)  # rounded in their own dtype, as TF and TFLite do
    require(math.isfinite(numbers), f"a range from {first} to {last} in steps of {step}")
    return max(0, math.ceil(numbers))
