"""WHERE: x -> int64 (n, rank), the indices of the n elements that are not zero or false, in C order (tf.where).

n is known when the model runs.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.dtypes import ANY, require_dtype

INT64 = np.dtype(np.int64)


class Where(Op):
    name = "WHERE"

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], ANY)
        count = None if values[0] is None else int(np.count_nonzero(values[0]))
        return [TensorType((count, inputs[0].rank), INT64)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.argwhere(arrays[0]).astype(INT64)]
