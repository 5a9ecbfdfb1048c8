"""Makes a model anew from smaller layers, with the weights that stay."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.channels.dead import DeadNeurons
from xnn_tf.channels.groups import ChannelGroups
from xnn_tf.channels.rules.base import LinkedCall
from xnn_tf.channels.symbolic import functional_view, is_functional, keras_of
from xnn_tf.channels.tracing import input_layer_of
from xnn_tf.keras_compat import sublayers, weight_name


class Rebuilder:
    """Clones a model layer by layer, each with the channels that stay."""

    def __init__(self, groups: ChannelGroups, dead: DeadNeurons) -> None:
        self._groups, self._dead = groups, dead
        self._at: dict[int, LinkedCall] = {}
        for at in groups.calls:
            self._at.setdefault(id(at.call.layer), at)
        self._made: dict[int, tuple[Any, Any]] = {}

    def __call__(self, model: Any) -> Any:
        """The smaller model, weights and all, not compiled."""
        new = self._clone(model)
        for old, made in self._made.values():
            if id(old) in self._at or not any(True for _ in sublayers(old)):
                self._copy_weights(old, made)
        return new

    def _clone(self, model: Any) -> Any:
        """The clone of a functional or Sequential model, or of what a subclassed one does."""
        graph: Any = model if is_functional(model) else functional_view(model)
        keras = keras_of(graph)
        if isinstance(graph, keras.Sequential):
            (tensor,) = graph.inputs
            layers = [self._layer(layer) for layer in graph.layers]
            return keras.Sequential([self._input(input_layer_of(tensor)), *layers], name=graph.name)
        nest = keras.tree if hasattr(keras, "tree") else sys.modules["tensorflow"].nest
        inputs = nest.map_structure(lambda tensor: self._input(input_layer_of(tensor)).output, graph.input)
        if keras.__name__ == "tf_keras" and any(map(self._becomes_functional, graph.layers)):
            return keras.Model(inputs, self._replayed(graph, nest.flatten(inputs), nest), name=graph.name)
        with _uncompiled(graph):
            return keras.models.clone_model(graph, inputs, clone_function=self._layer)

    def _becomes_functional(self, layer: Any) -> bool:
        """Whether a subclassed layer comes back as a model: `clone_model` of tf_keras would wait for ever for its node,
        which models count from 1 and layers from 0."""
        return id(layer) not in self._at and not is_functional(layer) and any(True for _ in sublayers(layer))

    def _replayed(self, graph: Any, inputs: list[Any], nest: Any) -> Any:
        """What the new layers give for new inputs, called as a graph of tf_keras calls the old ones."""
        known = {str(id(old)): _Given(new) for old, new in zip(graph.inputs, inputs, strict=True)}
        for depth in sorted(graph._nodes_by_depth, reverse=True):
            for node in graph._nodes_by_depth[depth]:
                if not node.is_input:
                    arguments, named = node.map_arguments(known)
                    results = nest.flatten(self._layer(node.layer)(*arguments, **named))
                    known.update((key, _Given(new)) for key, new in zip(node.flat_output_ids, results, strict=True))
        return nest.map_structure(lambda tensor: known[str(id(tensor))].pop(), graph._nested_outputs)

    def _input(self, layer: Any) -> Any:
        """An input layer for the channels that stay. `clone_model` of Keras 3 would give it another name."""
        config, channels = layer.get_config(), self._groups.entries.get(id(layer))
        if channels is not None:
            key = "batch_shape" if "batch_shape" in config else "batch_input_shape"
            shape = list(config[key])
            if shape[channels.axis] is not None:
                shape[channels.axis] = int(np.count_nonzero(self._keep(channels.ids)))
            config = {**config, key: tuple(shape)}
        return type(layer).from_config(config)

    def _layer(self, layer: Any) -> Any:
        if id(layer) not in self._made:
            self._made[id(layer)] = (layer, self._new(layer))
        return self._made[id(layer)][1]

    def _new(self, layer: Any) -> Any:
        at = self._at.get(id(layer))
        if at is None and hasattr(layer, "weights"):
            if is_functional(layer) or any(True for _ in sublayers(layer)):
                return self._clone(layer)
            return layer.__class__.from_config(layer.get_config())  # on no way to an output
        try:
            config = layer.get_config()
        except NotImplementedError as error:
            if not hasattr(layer, "weights"):
                return layer  # an operation has no state
            raise InputError(
                f"{at.call.path if at else layer.name} ({type(layer).__name__}) has no get_config(), so that it cannot "
                "be made anew: give it one"
            ) from error
        if at is not None:
            config = at.rule.resized(_unbuilt(config), at, self._keep)
            if id(layer) in self._dead.biases and _bias_of(layer) is None:
                config = at.rule.with_bias(config)
        return layer.__class__.from_config(config)

    def _keep(self, ids: np.ndarray) -> np.ndarray:
        return self._dead.keep[self._groups.unit_of[ids]]

    def _copy_weights(self, old: Any, new: Any) -> None:
        if not hasattr(old, "weights"):
            return
        known = {id(weight.variable): weight for weight in self._groups.weights}
        added = self._dead.biases.get(id(old))
        gains_bias = added is not None and _bias_of(old) is None
        targets = [v for v in new.weights if not (gains_bias and weight_name(v) == "bias")]
        for variable, target in zip(old.weights, targets, strict=True):
            values = np.asarray(variable.numpy())
            if variable is _bias_of(old) and added is not None:
                values = (values.astype(np.float64) + added).astype(values.dtype)
            if id(variable) in known:
                for axis, ids in known[id(variable)].axes.items():
                    values = np.compress(self._keep(ids), values, axis)
            target.assign(values)
        if gains_bias:
            at = self._at[id(old)]
            assert at.outputs[0] is not None and added is not None
            _bias_of(new).assign(added[self._keep(at.outputs[0].ids)])


def _unbuilt(config: Any) -> Any:
    """A config without the shapes that layers inside of it were built with."""
    if isinstance(config, dict):
        return {key: _unbuilt(value) for key, value in config.items() if key != "build_config"}
    return config


class _Given:
    """A tensor that a node of tf_keras takes from its list as often as it likes."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def pop(self) -> Any:
        return self._tensor


def _bias_of(layer: Any) -> Any:
    return getattr(getattr(layer, "layer", layer), "bias", None)


@contextmanager
def _uncompiled(model: Any) -> Iterator[None]:
    """Keeps Keras 3 from compiling a clone by a config, which not every loss has."""
    compiled = model.__dict__.get("compiled")
    if not compiled:
        yield
        return
    model.__dict__["compiled"] = False
    try:
        yield
    finally:
        model.__dict__["compiled"] = compiled


def compile_like(new: Any, old: Any) -> None:
    """Compiles a model as another was, with an optimizer of the same settings that has seen nothing yet.

    Losses and metrics that are objects are made anew from their configs where they have one. Warns where it does not
    succeed.
    """
    if not getattr(old, "optimizer", None) or getattr(old, "_compile_config", None) is None:
        return
    arguments = dict(old._compile_config.config)
    keras = keras_of(old)
    try:
        arguments["optimizer"] = type(old.optimizer).from_config(old.optimizer.get_config())
        new.compile(**{name: _fresh(value, keras) for name, value in arguments.items()})
    except (TypeError, ValueError, NotImplementedError) as error:
        warnings.warn(f"{new.name} is not compiled ({error}): call its compile() before fit", stacklevel=3)


def _fresh(value: Any, keras: Any) -> Any:
    """Metrics anew, in lists and dicts too: those of the other model keep their own counts."""
    if isinstance(value, dict):
        return {key: _fresh(inner, keras) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fresh(inner, keras) for inner in value)
    return type(value).from_config(value.get_config()) if isinstance(value, keras.metrics.Metric) else value
