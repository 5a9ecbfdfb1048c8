"""Layers that go through time, of floats or of int8. TFLite keeps their state in variables from one run to the next,
until it is told to forget it; here every run of a sequence begins with a state of zeros, as Keras's layers do.

SVDF, which sees one step of a stream in each run, gets its state as an input of the model and gives the next one as an
output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from converter.frontends.tflite.dequantized import real_weights
from converter.frontends.tflite.reading import Reading, reads
from schema.errors import FormatError, UnsupportedError
from schema.graph import Tensor
from schema.ops import lstm_operands as lstm

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH")
RNN_OPERANDS = 4  # weights, recurrent weights, bias, state


def _activation(reading: Reading) -> str:
    activation = reading.options["fused_activation_function"]
    if activation not in ACTIVATIONS:
        raise UnsupportedError(f"the activation {activation} is not supported")
    return activation


def _operands(reading: Reading, fewest: int, most: int, dtypes: tuple[Any, ...] = (np.float32,)) -> list[Tensor | None]:
    """All operands, weights beside float32 as real numbers."""
    given = reading.operands(fewest, most)
    x = given[0]
    if x.dtype not in dtypes:
        raise UnsupportedError(f"recurrent layers of {x.dtype} are not supported")
    return [x, *(None if tensor is None else real_weights(tensor, x) for tensor in given[1:])]


def _emit(reading: Reading, op: str, inputs: list[Tensor | None], y: Tensor, **attributes: Any) -> None:
    """The node, whose last states nobody reads."""
    places = {
        "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
        "UNIDIRECTIONAL_SEQUENCE_LSTM": (lstm.OUTPUT_STATE, lstm.CELL_STATE),
    }[op]
    states = [_next_state(reading, place, y, f"state_{i}") for i, place in enumerate(places)]
    reading.emit(op, inputs, [y, *states], **attributes)


def _next_state(reading: Reading, place: int, y: Tensor, name: str) -> Tensor:
    """What the variable at that place among the inputs becomes."""
    before = reading.variables.get(place) if y.dtype == np.int8 else None
    dtype, quantization = (y.dtype, None) if before is None else (before.dtype, before.quantization)
    return Tensor(f"{reading.layer}/{name}", dtype, None, quantization)


def _both_ways(
    reading: Reading, op: str, x: Tensor, other: Tensor, operands: list[list[Tensor | None]], attributes: dict[str, Any]
) -> None:
    """Two layers, the second of which goes through its sequence backwards."""
    merged = reading.options["merge_outputs"]
    if len(reading.outputs) != (1 if merged else 2):
        raise FormatError(f"{len(reading.outputs)} outputs")
    time = reading.constant([0 if attributes["time_major"] else 1], np.int32)

    def fresh(name: str) -> Tensor:
        return Tensor(f"{reading.layer}/{name}", x.dtype)

    forward, backward = (fresh("forward"), fresh("backward")) if merged else reading.outputs
    _emit(reading, op, [x, *operands[0]], forward, **attributes)
    turned = reading.intermediate("REVERSE_V2", [other, time], x.dtype)
    result = fresh("turned")
    _emit(reading, op, [turned, *operands[1]], result, **attributes)
    reading.emit("REVERSE_V2", [result, time], [backward])
    if merged:
        reading.emit("CONCATENATION", [forward, backward], axis=2)


def _second_input(x: Tensor, auxiliary: Tensor | None, weights: list[Tensor | None]) -> Tensor:
    """What the backward layer reads: an auxiliary input takes x's place unless it has weights of its own."""
    if any(tensor is not None for tensor in weights):
        raise UnsupportedError("weights of an auxiliary input are not supported")
    return x if auxiliary is None else auxiliary


@reads("UNIDIRECTIONAL_SEQUENCE_RNN", options="SequenceRNNOptions")
def unidirectional_sequence_rnn(reading: Reading) -> None:
    attributes = {"time_major": reading.options["time_major"], "activation": _activation(reading)}
    operands = _operands(reading, 4, 1 + RNN_OPERANDS)
    _emit(reading, "UNIDIRECTIONAL_SEQUENCE_RNN", operands, reading.output(), **attributes)


@reads("BIDIRECTIONAL_SEQUENCE_RNN", options="BidirectionalSequenceRNNOptions")
def bidirectional_sequence_rnn(reading: Reading) -> None:
    x, *rest = _operands(reading, 4, 12)
    attributes = {"time_major": reading.options["time_major"], "activation": _activation(reading)}
    other = _second_input(x, rest[2 * RNN_OPERANDS], rest[2 * RNN_OPERANDS + 1 :])
    if not attributes["time_major"]:
        other = x  # TFLite's kernel does not look at it there
    layers = [rest[:RNN_OPERANDS], rest[RNN_OPERANDS : 2 * RNN_OPERANDS]]
    _both_ways(reading, "UNIDIRECTIONAL_SEQUENCE_RNN", x, other, layers, attributes)


def _lstm_attributes(reading: Reading) -> dict[str, Any]:
    names = {"time_major": "time_major", "cell_clip": "cell_clip", "projection_clip": "proj_clip"}
    return {ours: reading.options[theirs] for ours, theirs in names.items()} | {"activation": _activation(reading)}


@reads("UNIDIRECTIONAL_SEQUENCE_LSTM", options="UnidirectionalSequenceLSTMOptions")
def unidirectional_sequence_lstm(reading: Reading) -> None:
    operands = _operands(reading, 1, lstm.OPERANDS, (np.float32, np.int8))
    attributes = _lstm_attributes(reading)
    if operands[0].dtype == np.int8:
        attributes |= _scales_inside(reading, operands[lstm.NORMS + lstm.FORGET] is not None)
        if operands[lstm.PROJECTION] is not None and operands[lstm.PEEPHOLES + 1] is not None:
            _refuse_peepholes_before_a_projection(reading, operands)
    _emit(reading, "UNIDIRECTIONAL_SEQUENCE_LSTM", operands, reading.output(), **attributes)


def _scales_inside(reading: Reading, normalized: bool) -> dict[str, Any]:
    """Of what TFLite's int8 kernel calls intermediates: four gates before their normalization, and the hidden state."""
    tensors = reading.intermediates
    if len(tensors) != 5:
        raise FormatError(f"{len(tensors)} intermediates; there are 5")
    needed = tensors if normalized else tensors[4:]
    for tensor in needed:
        if tensor.quantization is None or tensor.quantization.per_channel:
            raise FormatError(f"intermediate '{tensor.name}' has not one scale")
    hidden = tensors[4].quantization
    scales = [float(tensor.quantization.scale[0]) for tensor in tensors[:4]] if normalized else []
    return {
        "hidden_scale": float(hidden.scale[0]),
        "hidden_zero_point": int(hidden.zero_point[0]),
        "gate_scales": tuple(scales),
    }


def _refuse_peepholes_before_a_projection(reading: Reading, operands: list[Tensor | None]) -> None:
    """TFLite's int8 kernel takes the number of outputs for that of cells where peepholes look at the cells."""
    weights, projection = (reading.shape(operands[i]) for i in (lstm.WEIGHTS + lstm.FORGET, lstm.PROJECTION))
    if weights[:1] != projection[:1]:
        raise UnsupportedError("int8 peepholes beside a projection to another size are not supported")


@reads("BIDIRECTIONAL_SEQUENCE_LSTM", options="BidirectionalSequenceLSTMOptions")
def bidirectional_sequence_lstm(reading: Reading) -> None:
    """Weights of the forward layer, of the backward one, their states, the auxiliary input and its weights."""
    x, *rest = _operands(reading, 1, 48)
    count = lstm.OUTPUT_STATE - lstm.WEIGHTS
    other = _second_input(x, rest[2 * count + 4], rest[2 * count + 5 :])
    layers = [rest[:count] + rest[2 * count : 2 * count + 2], rest[count : 2 * count] + rest[2 * count + 2 :][:2]]
    _both_ways(reading, "UNIDIRECTIONAL_SEQUENCE_LSTM", x, other, layers, _lstm_attributes(reading))


@reads("SVDF", options="SVDFOptions")
def svdf(reading: Reading) -> None:
    x, features, times, bias, state = _operands(reading, 3, 5, (np.float32, np.int8))
    y = reading.output()
    after = _next_state(reading, 4, y, "next_state")
    if state is None:
        sizes = [reading.shape(tensor)[0] if reading.shape(tensor) else None for tensor in (x, features)]
        memory = reading.shape(times)[-1] if reading.shape(times) else None
        whole = None if None in (sizes[1], memory) else sizes[1] * memory
        state = Tensor(f"{reading.layer}/state", after.dtype, (sizes[0], whole), after.quantization)
        reading.states.append((state, after))
    attributes = {"rank": reading.options["rank"], "activation": _activation(reading)}
    reading.emit("SVDF", [x, features, times, bias, state], [y, after], **attributes)
