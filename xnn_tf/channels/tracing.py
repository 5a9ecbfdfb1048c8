"""A model as a list of calls: nested, Sequential and subclassed models are looked into, in either Keras."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schema.errors import InputError
from xnn_tf.channels.symbolic import functional_view
from xnn_tf.keras_compat import require_tensorflow_keras


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor between layers. shape: with the batch, None where unknown."""

    shape: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """One application of a layer or operation.

    Attributes:
        layer: the layer of its Keras; in Keras 3 perhaps an `Operation`.
        path: names of the containers and the layer, joined by `/`: `encoder/dense`.
        inputs: its tensor arguments.
        outputs: its results.
        arguments: what else it is called with, None and booleans left out.
    """

    layer: Any
    path: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Trace:
    """What a model does, in an order in which it can be done.

    Attributes:
        inputs: of the model.
        outputs: of the model.
        calls: of its layers.
        entries: the input layers of the model and of those inside, each with what it is given in one application.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    calls: tuple[Call, ...]
    entries: tuple[tuple[Any, Value], ...]


def trace(model: Any) -> Trace:
    """Lists the calls of a model's layers, those inside of nested models too.

    Raises:
        InputError: it is no Keras model, or a subclassed one that cannot be followed; the message names the layer.
        UnsupportedError: Keras runs on another backend than TensorFlow.
    """
    require_tensorflow_keras(model)
    graph = functional_view(model)
    if graph is None:
        raise InputError(f"{model.name}: the layers of a {type(model).__name__} cannot be followed")
    inputs = tuple(Value(_shape(tensor)) for tensor in graph.inputs)
    calls: list[Call] = []
    entries: list[tuple[Any, Value]] = []
    outputs = _follow(graph, inputs, "", calls, entries)
    return Trace(inputs, outputs, tuple(calls), tuple(entries))


def input_layer_of(tensor: Any) -> Any:
    """The InputLayer of a symbolic input, in either Keras."""
    history = tensor._keras_history
    return getattr(history, "operation", None) or history.layer


def _follow(
    graph: Any, inputs: tuple[Value, ...], path: str, calls: list[Call], entries: list[tuple[Any, Value]]
) -> tuple[Value, ...]:
    entries += [(input_layer_of(tensor), value) for tensor, value in zip(graph.inputs, inputs, strict=True)]
    values = {id(tensor): value for tensor, value in zip(graph.inputs, inputs, strict=True)}
    for node in _nodes(graph):
        layer, tensors, results, arguments = _read(node)
        if any(id(tensor) not in values for tensor in tensors):
            continue
        there = f"{path}/{layer.name}" if path else layer.name
        given = tuple(values[id(tensor)] for tensor in tensors)
        inner = functional_view(layer, tensors)
        if inner is not None and len(inner.inputs) == len(given):
            got = _follow(inner, given, there, calls, entries)
        else:
            got = tuple(Value(_shape(tensor)) for tensor in results)
            calls.append(Call(layer, there, given, got, arguments))
        values.update((id(tensor), value) for tensor, value in zip(results, got, strict=True))
    return tuple(values[id(tensor)] for tensor in graph.outputs)


def _nodes(graph: Any) -> Iterator[Any]:
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            if not node.is_input:
                yield node


def _read(node: Any) -> tuple[Any, list[Any], list[Any], tuple[Any, ...]]:
    """(layer, tensor arguments, results, other arguments) of a node of either Keras."""
    if hasattr(node, "operation"):  # Keras 3
        import keras

        tensors, results = list(node.arguments.keras_tensors), list(node.outputs)
        flat = keras.tree.flatten((node.arguments.args, node.arguments.kwargs))
    else:
        import tensorflow as tf

        tensors, results = list(node.keras_inputs), tf.nest.flatten(node.outputs)
        flat = tf.nest.flatten((node.call_args, dict(node.call_kwargs)))
    known = {id(tensor) for tensor in tensors}
    others = tuple(a for a in flat if id(a) not in known and a is not None and not isinstance(a, bool))
    return getattr(node, "operation", None) or node.layer, tensors, results, others


def _shape(tensor: Any) -> tuple[int | None, ...]:
    return tuple(None if size is None else int(size) for size in tensor.shape)
