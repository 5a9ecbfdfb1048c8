"""SVDF: (x (batch, in), feature weights (filters, in), time weights (filters, memory), bias? (units,), state?
(batch, filters * memory)) -> (y (batch, units), the next state).

Each filter remembers its last `memory` features, the newest last; y is their sum weighted over time, the filters of a
unit (`rank` one after another) added up (Nakkiran et al. 2015; TFLite reference/svdf.h).

int8: x, feature weights and y are int8, time weights and states int16, the bias int32; features are requantized to the
state, sums to y. The activation must be RELU, which TFLite's kernel demands and leaves to y's zero point: it clamps to
int8 alone.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops import recurrent
from schema.ops.attributes import SVDFAttributes
from schema.ops.base import Op, element_count, require
from schema.ops.dtypes import QUANTIZED, per_tensor, require_dtype

INT8, INT16, INT32 = (np.dtype(name) for name in ("int8", "int16", "int32"))
DTYPES = (INT8, INT8, INT16, INT32, INT16)
"""Of the operands of an int8 layer."""


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
        if x.dtype in QUANTIZED:
            for index, (tensor, needed) in enumerate(zip((x, features, times, bias, state), DTYPES, strict=True)):
                if tensor is not None:
                    require_dtype(cls.name, f"operand {index} of an int8 layer", tensor, {needed})
            require(attributes.activation == "RELU", f"int8 has the activation RELU, not {attributes.activation}")
            dtype, state_dtype = INT8, INT16
        else:
            dtype = state_dtype = recurrent.infer_dtype(cls.name, inputs)
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
        return [TensorType((batch, units), dtype), TensorType((batch, whole), state_dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return inputs[0].shape[0] * (element_count(inputs[1]) + element_count(inputs[2]))

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, features, times, bias, state = (*arrays, None, None)[:5]
        if x.dtype in QUANTIZED:
            return cls.integers(attributes, arrays, inputs, outputs)
        filters, memory = times.shape
        newest = x.astype(np.float64) @ features.T.astype(np.float64)
        before = recurrent.initial(state, len(x), filters * memory).reshape(-1, filters, memory)
        after = np.concatenate([before[..., 1:], newest[..., np.newaxis]], axis=-1)
        y = (after * times).sum(axis=-1).reshape(len(x), filters // attributes.rank, attributes.rank).sum(axis=-1)
        y = y if bias is None else y + bias
        activation = recurrent.ACTIVATIONS[attributes.activation]
        return [activation(y).astype(x.dtype), after.reshape(len(x), -1).astype(x.dtype)]

    @classmethod
    def integers(cls, attributes, arrays, inputs, outputs):
        """The result for int8. A state that is left out is zeros."""
        x, features, times = (array.astype(np.int64) for array in arrays[:3])
        bias, state = (None if a is None else a.astype(np.int64) for a in (*arrays, None, None)[3:5])
        filters, memory = times.shape
        types = (*inputs, None, None)[:5]
        x_scale, x_zero = per_tensor(cls.name, "x", types[0])
        feature_scale, _ = per_tensor(cls.name, "feature weights", types[1])
        time_scale, _ = per_tensor(cls.name, "time weights", types[2])
        state_scale, _ = per_tensor(cls.name, "state", outputs[1] if types[4] is None else types[4])
        scale, zero_point = per_tensor(cls.name, "output", outputs[0])
        found, _ = per_tensor(cls.name, "next state", outputs[1])
        require(found == state_scale, f"the states have two scales, {state_scale:g} and {found:g}")
        newest = fixedpoint.multiply_by_real((x - x_zero) @ features.T, x_scale * feature_scale / state_scale)
        newest = fixedpoint.saturate(newest, INT16)
        before = np.zeros((len(x), filters, memory), np.int64) if state is None else state.reshape(-1, filters, memory)
        after = np.concatenate([before[..., 1:], newest[..., np.newaxis]], axis=-1)
        y = (after * times).sum(axis=-1).reshape(len(x), filters // attributes.rank, attributes.rank).sum(axis=-1)
        y = fixedpoint.wrap_int32(y if bias is None else y + bias)
        y = fixedpoint.multiply_by_real(y, state_scale * time_scale / scale) + zero_point
        return [fixedpoint.saturate(y, INT8).astype(INT8), after.reshape(len(x), -1).astype(INT16)]
