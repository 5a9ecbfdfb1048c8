"""A new functional model of quantized layers, with the weights of the old one."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from xnn_tf.quantization.plan import Group
from xnn_tf.quantization.settings import QuantizationRecipe
from xnn_tf.quantization.sources import moves_only
from xnn_tf.quantization.strategies.activation import RoundingStrategy
from xnn_tf.quantization.trace import Call, Ref, Trace, mapped
from xnn_tf.quantization.wrapper import PREFIX, wrapper_of

ROUNDING = "quantize_"
"""Of layers that round what comes from outside, or from a layer that computes floats."""


class Rebuild:
    """Calls new layers in the order of the groups. Layers that are called several times are made once."""

    def __init__(self, model: Any, trace: Trace, recipe: QuantizationRecipe):
        self._model, self._trace, self._recipe = model, trace, recipe
        self._keras = trace.keras
        self._tensors: dict[Ref, Any] = {}
        self._names: dict[Ref, str] = {}
        self._rounded: dict[Ref, Any] = {}  # whether a tensor has a range, and a rounded form of it where it has none
        self._layers: dict[int, Any] = {}
        self._pairs: list[tuple[Any, Any]] = []
        self._used: set[str] = set()
        self._int16: set[Ref] = set()

    def run(self, groups: list[Group]) -> Any:
        self._int16 = _read_as_int16(groups)
        for tensor, ref in zip(self._trace.graph.inputs, self._trace.inputs, strict=True):
            name = getattr(tensor, "name", "input").split(":")[0]
            self._tensors[ref] = self._keras.Input(
                batch_shape=tuple(tensor.shape), dtype=tensor.dtype, name=self._unique(name)
            )
            self._names[ref] = name
        for group in groups:
            self._call(group)
        inputs = [self._tensors[ref] for ref in self._trace.inputs]
        outputs = mapped(self._trace.outputs, lambda value: self._tensors.get(value, value))
        structure = self._input_structure(inputs)
        model = self._keras.Model(structure, outputs, name=self._model.name)
        for old, new in self._pairs:
            new.set_weights(old.get_weights())
        for layer in model.layers:
            if hasattr(layer, "start_steps"):
                layer.start_steps()
        return model

    def _input_structure(self, inputs: list[Any]) -> Any:
        """The new inputs as the model takes them."""
        graph = self._trace.graph
        structure = getattr(graph, "_inputs_struct", None)
        if structure is None:
            structure = graph._nested_inputs
        place = {id(old): new for old, new in zip(graph.inputs, inputs, strict=True)}
        return mapped(structure, lambda value: place.get(id(value), value))

    def _call(self, group: Group) -> None:
        call = group.call
        layer = self._layer(group)
        quantized = group.strategy is not None
        integers = group.strategy is not None and group.strategy.integer_inputs
        if quantized:
            # Masks and initial states are beside the inputs, and stay as they are.
            given, others = _packed(call.layer, call.args, call.kwargs)
            inputs = mapped(given, lambda v: self._argument(v, integers, call))
            result = layer(inputs, **mapped(others, lambda v: self._argument(v, False, call)))
        else:
            args, kwargs = mapped((call.args, call.kwargs), lambda v: self._argument(v, False, call))
            result = layer(*args, **kwargs)
        has_range = self._has_range(layer, call)
        for ref, tensor in zip(group.outputs, _flat(result), strict=True):
            self._tensors[ref] = tensor
            self._names[ref] = call.layer.name
            if has_range:
                self._rounded[ref] = tensor

    def _has_range(self, layer: Any, call: Call) -> bool:
        if hasattr(layer, "output_source"):
            return layer.output_source is not None
        inputs = call.inputs()
        return moves_only(layer) and len(inputs) == 1 and inputs[0] in self._rounded

    def _argument(self, value: Any, integers: bool, call: Call) -> Any:
        if not isinstance(value, Ref):
            return value
        if not integers:
            return self._tensors[value]
        if value not in self._rounded:
            tensor = self._tensors[value]
            if "float" not in str(tensor.dtype):
                return tensor
            name = self._unique(f"{ROUNDING}{self._names[value]}")
            identity = self._keras.layers.Activation("linear", name=f"{name}_identity")
            settings = self._recipe.settings()
            if value in self._int16:
                settings = replace(settings, activations=16)
            wrapper = wrapper_of(identity, RoundingStrategy(settings), name=name)
            self._rounded[value] = wrapper(tensor)
        return self._rounded[value]

    def _layer(self, group: Group) -> Any:
        old = group.call.layer
        if id(old) not in self._layers:
            if not hasattr(old, "get_config") or not hasattr(old, "weights"):  # an operation on tensors
                return old
            new = _copy(old)
            self._pairs.append((old, new))
            if group.strategy is not None:
                followers = {}
                for argument, call in (("batch_norm", group.batch_norm), ("activation", group.activation)):
                    if call is not None:
                        followers[argument] = _copy(call.layer)
                        self._pairs.append((call.layer, followers[argument]))
                new = wrapper_of(new, group.strategy, name=self._unique(f"{PREFIX}{old.name}"), **followers)
            else:
                new = _copy(old, self._unique(old.name))
                self._pairs[-1] = (old, new)
            self._layers[id(old)] = new
        return self._layers[id(old)]

    def _unique(self, name: str) -> str:
        name = name.replace("/", "_")
        number, candidate = 0, name
        while candidate in self._used:
            number += 1
            candidate = f"{name}_{number}"
        self._used.add(candidate)
        return candidate


def _read_as_int16(groups: list[Group]) -> set[Ref]:
    """What only layers read that take int16."""
    wide: set[Ref] = set()
    others: set[Ref] = set()
    for group in groups:
        strategy = group.strategy
        takes = strategy is not None and strategy.input_settings(group.call.layer).activations == 16
        (wide if takes else others).update(group.call.inputs())
    return wide - others


def _copy(layer: Any, name: str | None = None) -> Any:
    config = layer.get_config()
    if name is not None and "name" in config:
        config["name"] = name
    return type(layer).from_config(config)


def _packed(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What a wrapper is called with: all tensors as its first argument for attention, which takes several."""
    kwargs = {key: value for key, value in kwargs.items() if value is not None}
    if type(layer).__name__ != "MultiHeadAttention":
        names = list(inspect.signature(layer.call).parameters)
        given = {**{n: v for n, v in zip(names, args) if v is not None}, **kwargs}  # noqa: B905
        inputs = given.pop(next(iter(given)))
        if hasattr(layer, "return_state") and isinstance(inputs, (list, tuple)):
            inputs, *given["initial_state"] = inputs
        return inputs, given
    named = dict(zip(("query", "value", "key", "query_mask"), args))  # noqa: B905
    tensors = [named.get(name, kwargs.pop(name, None)) for name in ("query", "value", "key")]
    return [tensor for tensor in tensors if tensor is not None], kwargs


def _flat(structure: Any) -> list[Any]:
    if isinstance(structure, (list, tuple)):
        return [leaf for value in structure for leaf in _flat(value)]
    return [structure]
