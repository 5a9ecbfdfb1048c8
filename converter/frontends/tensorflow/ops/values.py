"""Constants, variables, and ops that hand their input on: what matters to training only has no meaning here."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from converter.frontends.tensorflow import dtypes
from converter.frontends.tensorflow.ops.reading import Reading, Result, Variable, reads
from schema.errors import UnsupportedError
from schema.graph import Tensor


@reads("Const")
def constant(reading: Reading) -> Result:
    if reading.attribute("dtype") is None:
        raise UnsupportedError("a constant without a dtype")
    return reading.builder.constant(dtypes.from_array(tf.make_ndarray(reading.node.attr["value"].tensor)), reading.name)


@reads(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "CheckNumerics",
    "Snapshot",
    "EnsureShape",
    "PlaceholderWithDefault",
    "DisableCopyOnRead",
    "OptimizationBarrier",
)
def identity(reading: Reading) -> Result:
    value = reading.inputs[0]
    return reading.tensor(0) if isinstance(value, Tensor) else value


EXACT = "xnn_exact"
"""Name of nodes whose first input is the second as the engine's integers compute it, so that quantize-aware models
predict what their file will: only the second is read, which the engine computes so by itself."""


@reads("IdentityN", "Print", "PrintV2")
def identities(reading: Reading) -> Result:
    tensors = reading.tensors()
    return tensors * 2 if EXACT in reading.name else tensors


@reads("ReadVariableOp")
def read_variable(reading: Reading) -> Result:
    (variable,) = reading.inputs
    if not isinstance(variable, Variable):
        raise UnsupportedError("the variable that is read is unknown")
    return variable.tensor()


@reads("ResourceGather")
def gather_variable(reading: Reading) -> Result:
    variable, indices = reading.inputs
    if not isinstance(variable, Variable) or not isinstance(indices, Tensor):
        raise UnsupportedError("the variable that is looked up in is unknown")
    batch_dims = reading.attribute("batch_dims") or 0
    return reading.emit("GATHER", variable.tensor(), indices, axis=batch_dims, batch_dims=batch_dims)


@reads("Cast")
def cast(reading: Reading) -> Result:
    """Between widths of real numbers there is nothing to do: all are float32."""
    x, dtype = reading.tensor(0), reading.attribute("DstT")
    return x if x.dtype == dtype else reading.emit("CAST", x, dtype=dtype)


@reads("ZerosLike", "OnesLike")
def filled_like(reading: Reading) -> Result:
    x = reading.tensor(0)
    value = reading.constant(1 if reading.node.op == "OnesLike" else 0, x.dtype)
    return reading.emit("FILL", reading.emit("SHAPE", x, dtype=np.dtype(np.int32)), value)
