"""A Keras model as a list of calls: which layer is called on which tensors. Nested models are laid open.

Subclassed models and composite layers are called on symbolic tensors, which shows what they call, where their code
takes such tensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from schema.errors import UnsupportedError
from xnn_tf.keras_compat import require_tensorflow_keras, sublayers

KERAS = ("keras", "tf_keras")
WHOLE = frozenset("RNN Bidirectional TimeDistributed Wrapper StackedRNNCells".split())
"""Keras' own layers of layers, which are not laid open."""


@dataclass(eq=False)
class Ref:
    """A tensor."""


@dataclass(eq=False)
class Call:
    """layer: a layer, or an operation on symbolic tensors. path: names of the models around it and its own."""

    layer: Any
    path: str
    args: Any
    kwargs: Any
    outputs: list[Ref]

    def inputs(self) -> list[Ref]:
        """All tensors among the arguments."""
        return list(refs_in((self.args, self.kwargs)))


@dataclass
class Trace:
    """graph: the functional model that was followed. outputs: in the structure of the model's."""

    keras: Any
    graph: Any
    inputs: list[Ref]
    calls: list[Call] = field(default_factory=list)
    outputs: Any = None


def refs_in(structure: Any) -> Iterator[Ref]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(structure, Ref):
        yield structure
    elif isinstance(structure, (list, tuple)):
        for value in structure:
            yield from refs_in(value)
    elif isinstance(structure, dict):
        for value in structure.values():
            yield from refs_in(value)


def mapped(structure: Any, function: Callable[[Any], Any]) -> Any:
    """Nested lists, tuples and dicts with each leaf replaced."""
    if isinstance(structure, (list, tuple)):
        values = [mapped(value, function) for value in structure]
        return values if isinstance(structure, list) else tuple(values)
    if isinstance(structure, dict):
        return {key: mapped(value, function) for key, value in structure.items()}
    return function(structure)


def trace(model: Any) -> Trace:
    """The calls of a model that is functional, sequential or, where its code allows it, subclassed.

    Raises UnsupportedError, naming the model, for others.
    """
    keras = importlib.import_module(require_tensorflow_keras(model))
    graph = _as_graph(model, keras)
    result = Trace(keras, graph, [Ref() for _ in graph.inputs])
    result.outputs = _Tracer(keras, result.calls).run(graph, result.inputs, "")
    return result


class _Tracer:
    def __init__(self, keras: Any, calls: list[Call]):
        self._keras, self._calls = keras, calls

    def run(self, graph: Any, inputs: list[Ref], prefix: str) -> Any:
        refs = {id(tensor): ref for tensor, ref in zip(graph.inputs, inputs, strict=True)}

        def ref_of(value: Any) -> Any:
            return refs.get(id(value), value)

        for node in _nodes(graph):
            layer = _layer(node)
            args, kwargs = mapped(_arguments(node), ref_of)
            outputs = [Ref() for _ in _flat(node.outputs)]
            path = f"{prefix}{layer.name}"
            inner = self._inner(layer, node)
            if inner is None:
                self._calls.append(Call(layer, path, args, kwargs, outputs))
            else:
                given = list(refs_in((args, kwargs)))
                made = list(refs_in([self.run(inner, given, f"{path}/")]))
                outputs = made
            refs.update((id(tensor), ref) for tensor, ref in zip(_flat(node.outputs), outputs, strict=True))
        return mapped(_output_structure(graph), ref_of)

    def _inner(self, layer: Any, node: Any) -> Any:
        """The graph of a nested model or composite layer, None for a layer that is taken as it is."""
        if is_graph(layer):
            return _graph_of(layer)
        if _is_own(layer) or hasattr(layer, "quantization_strategy") or not any(True for _ in _children(layer)):
            return None
        tensors = [t for t in _flat(_arguments(node)) if hasattr(t, "_keras_history")]
        inputs = [self._keras.Input(tuple(t.shape)[1:], dtype=t.dtype) for t in tensors]
        place = {id(old): new for old, new in zip(tensors, inputs, strict=True)}
        args, kwargs = mapped(_arguments(node), lambda value: place.get(id(value), value))
        try:
            return self._keras.Model(inputs, layer.call(*args, **kwargs))
        except Exception:  # a layer's own code may fail in any way: it is taken whole then
            return None


def _as_graph(model: Any, keras: Any) -> Any:
    if is_graph(model):
        return _graph_of(model)
    inputs = _inputs_of_subclassed(model, keras)
    try:
        return keras.Model(inputs, model.call(inputs))
    except Exception as error:  # a model's own code may fail in any way
        text = " ".join(str(error).split())[:200]
        raise UnsupportedError(
            f"model '{model.name}' ({type(model).__name__}) is subclassed, and its call cannot be followed on symbolic "
            f"tensors ({type(error).__name__}: {text}): use layers and keras.ops in it, or build its parts of "
            "xnn_tf.quantization.QuantizeWrapper(layer)"
        ) from error


def _inputs_of_subclassed(model: Any, keras: Any) -> Any:
    advice = f"call model '{model.name}' on a batch of data once, so that its inputs are known"
    if keras.__name__ == "tf_keras":
        spec = getattr(model, "save_spec", lambda: None)()
        if spec is None:
            raise UnsupportedError(f"the inputs are unknown: {advice}")
        ((structure, *_), _) = spec
        return mapped(structure, lambda s: keras.Input(tuple(s.shape)[1:], dtype=s.dtype, name=None))
    shapes = getattr(model, "_build_shapes_dict", None)
    if not shapes:
        raise UnsupportedError(f"the inputs are unknown: {advice}")
    found = list(shapes.values())
    return _input_of(found[0], keras) if len(found) == 1 else [_input_of(shape, keras) for shape in found]


def _input_of(shape: Any, keras: Any) -> Any:
    if isinstance(shape, dict):
        return {key: _input_of(value, keras) for key, value in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return keras.Input(tuple(shape)[1:])
    return [_input_of(part, keras) for part in shape]


def is_graph(layer: Any) -> bool:
    """Whether a layer is a functional or sequential model."""
    return hasattr(_graph_of(layer), "_nodes_by_depth")


def _graph_of(layer: Any) -> Any:
    """A sequential model of Keras 3 has a functional one inside."""
    inner = getattr(layer, "_functional", None)
    return layer if inner is None else inner


def _children(layer: Any) -> Iterator[Any]:
    return sublayers(layer) if hasattr(layer, "_flatten_layers") else iter(())


def _is_own(layer: Any) -> bool:
    """Whether it is Keras' own layer."""
    return type(layer).__module__.partition(".")[0] in KERAS


def _nodes(graph: Any) -> Iterator[Any]:
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        yield from (node for node in graph._nodes_by_depth[depth] if not node.is_input)


def _layer(node: Any) -> Any:
    return node.operation if hasattr(node, "operation") else node.layer


def _arguments(node: Any) -> tuple[Any, Any]:
    if hasattr(node, "arguments"):
        return tuple(node.arguments.args), dict(node.arguments.kwargs)
    return tuple(node.call_args), dict(node.call_kwargs)


def _flat(structure: Any) -> list[Any]:
    if isinstance(structure, (list, tuple)):
        return [leaf for value in structure for leaf in _flat(value)]
    if isinstance(structure, dict):
        return [leaf for value in structure.values() for leaf in _flat(value)]
    return [structure]


def _output_structure(graph: Any) -> Any:
    if hasattr(graph, "_outputs_struct"):
        return graph._outputs_struct
    return graph._nested_outputs
