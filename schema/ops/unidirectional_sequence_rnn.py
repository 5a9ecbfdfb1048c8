"""UNIDIRECTIONAL_SEQUENCE_RNN: (x, weights (units, in), recurrent weights (units, units), bias (units,), optional state
(batch, units)) -> (y, the last state).

h = activation(weights x + recurrent weights h + bias) at each step; y is the sequence of h (TFLite
kernels/unidirectional_sequence_rnn.cc).
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops import recurrent
from schema.ops.attributes import SequenceRNNAttributes
from schema.ops.base import Op


class UnidirectionalSequenceRNN(Op):
    name = "UNIDIRECTIONAL_SEQUENCE_RNN"
    Attributes = SequenceRNNAttributes
    inputs = (4, 5)
    outputs = 2

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, weights, again, bias, state = (*inputs, None)[:5]
        dtype = recurrent.infer_dtype(cls.name, inputs)
        batch, time, features = recurrent.sequence_dims(x, attributes.time_major)
        units, depth = recurrent.dims(weights, 2, "weights")
        to, back = recurrent.dims(again, 2, "recurrent weights")
        before = recurrent.dims(state, 2, "states")
        recurrent.agree("features", features, depth)
        units = recurrent.agree("units", units, to, back, recurrent.dims(bias, 1, "biases")[0], before[1])
        batch = recurrent.agree("batch", batch, before[0])
        sequence = recurrent.sequence_shape(batch, time, units, attributes.time_major)
        return [TensorType(sequence, dtype), TensorType((batch, units), dtype)]

    @classmethod
    def macs(cls, attributes, inputs, outputs):
        return recurrent.macs(inputs[0], inputs[1:3])

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, weights, again, bias, state = (*arrays, None)[:5]
        weights, again = weights.T.astype(np.float64), again.T.astype(np.float64)
        activation = recurrent.ACTIVATIONS[attributes.activation]
        steps = recurrent.through_time(x, attributes.time_major)
        h = recurrent.initial(state, steps.shape[1], weights.shape[1])
        results = []
        for step in steps:
            h = activation(step @ weights + h @ again + bias)
            results.append(h)
        y = recurrent.as_sequence(results, x, weights.shape[1], attributes.time_major)
        return [y, h.astype(x.dtype)]
