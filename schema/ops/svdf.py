"""SVDF: (x (batch, in), feature weights (filters, in), time weights (filters, memory), bias? (units,), state?
(batch, filters * memory)) -> (y (batch, units), the next state).

Each filter remembers its last `memory` features, the newest last; y is their sum weighted over time, the filters of a
unit (`rank` one after another) added up (Nakkiran et al. 2015; TFLite reference/svdf.h).
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops import recurrent
from schema.ops.attributes import SVDFAttributes
from schema.ops.base import Op, require


class Svdf(Op):
    name = "SVDF"
    Attributes = SVDFAttributes
    inputs = (3, 5)
    outputs = 2

    @classmethod
    def check(cls, attributes):
        require(attributes.rank > 0, f"the rank is {attributes.rank}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, features, times, bias, state = (*inputs, None, None)[:5]
        dtype = recurrent.infer_dtype(cls.name, inputs)
        batch, size = recurrent.dims(x, 2, "inputs")
        filters, depth = recurrent.dims(features, 2, "feature weights")
        same, memory = recurrent.dims(times, 2, "time weights")
        recurrent.agree("features", size, depth)
        filters = recurrent.agree("filters", filters, same)
        require(
            filters is None or filters % attributes.rank == 0, f"{filters} filters do not have rank {attributes.rank}"
        )
        require(memory != 0, "there is no memory")
        units = None if filters is None else filters // attributes.rank
        before, remembered = recurrent.dims(state, 2, "states")
        units = recurrent.agree("units", units, recurrent.dims(bias, 1, "biases")[0])
        whole = None if filters is None or memory is None else filters * memory
        whole = recurrent.agree("state", whole, remembered)
        batch = recurrent.agree("batch", batch, before)
        return [TensorType((batch, units), dtype), TensorType((batch, whole), dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, features, times, bias, state = (*arrays, None, None)[:5]
        filters, memory = times.shape
        newest = x.astype(np.float64) @ features.T.astype(np.float64)
        before = recurrent.initial(state, len(x), filters * memory).reshape(-1, filters, memory)
        after = np.concatenate([before[..., 1:], newest[..., np.newaxis]], axis=-1)
        y = (after * times).sum(axis=-1).reshape(len(x), filters // attributes.rank, attributes.rank).sum(axis=-1)
        y = y if bias is None else y + bias
        activation = recurrent.ACTIVATIONS[attributes.activation]
        return [activation(y).astype(x.dtype), after.reshape(len(x), -1).astype(x.dtype)]
