"""A Keras model object, of Keras 3 or tf_keras, traced into a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from converter.frontends.tensorflow import dtypes
from converter.frontends.tensorflow.backend import module_of, require_tensorflow
from converter.frontends.tensorflow.names import LayerNames, without_number
from converter.frontends.tensorflow.program import Port, Program, Update
from schema.errors import ConversionError, InputError, XnnError

SIGNATURE = "serving_default"


def trace(model: Any, signature: str | None = None) -> Program:
    """The program of `model(inputs, training=False)`.

    The batch stays unknown unless an Input fixes it. Raises ConversionError for a model that is not built, or whose
    call fails.
    """
    if signature not in (None, SIGNATURE):
        raise InputError(f"a model object has no signature '{signature}': signatures are a SavedModel's")
    if module_of(model) == "keras":
        require_tensorflow()
    structure, names = _inputs(model)
    specs = tf.nest.flatten(structure)
    outputs: list[str] = []

    def call(*tensors: tf.Tensor) -> list[tf.Tensor]:
        result = model(tf.nest.pack_sequence_as(structure, tensors), training=False)
        flat = list(_flatten(result))
        outputs[:] = [name for name, _ in flat]
        return [tensor for _, tensor in flat]

    try:
        concrete = tf.function(call, autograph=False).get_concrete_function(*specs)
    except XnnError:
        raise
    except Exception as error:  # a model's own code may fail in any way
        text = " ".join(str(error).split())[:300]
        raise ConversionError(f"model '{model.name}' cannot be traced ({type(error).__name__}: {text})") from error
    return _program(model, concrete, names, _output_names(model, outputs))


def _program(model: Any, concrete: Any, input_names: Sequence[str], output_names: Sequence[str]) -> Program:
    graph = concrete.graph
    definition = graph.as_graph_def()
    variables = {id(variable.handle): variable for variable in graph.variables}
    loaders, captured, names_of = {}, {}, {}
    for outside, inside in graph.captures:
        name = inside.name.split(":")[0]
        if id(outside) in variables:
            loaders[name] = partial(_numpy, variables[id(outside)])
            names_of[name] = variables[id(outside)].name.split(":")[0]
        elif outside.dtype not in (tf.resource, tf.variant, tf.string):
            captured[name] = outside.numpy()
    own_inputs = concrete.inputs[: len(input_names)]
    return Program(
        nodes=definition.node,
        functions={function.signature.name: function for function in definition.library.function},
        inputs=[
            Port(name, tensor.name, dtypes.from_enum(tensor.dtype.as_datatype_enum), _dims(tensor.shape))
            for name, tensor in zip(input_names, own_inputs, strict=True)
        ],
        outputs=[Port(name, tensor.name) for name, tensor in zip(output_names, concrete.outputs, strict=True)],
        layers=_layer_names(model, [node.name for node in definition.node]),
        variables=loaders,
        captured=captured,
        updates=_updates(definition.node, names_of),
        name=SIGNATURE,
    )


def _updates(nodes: Sequence[Any], names: dict[str, str]) -> dict[str, Update]:
    """What a call assigns to the variables that `names` names, as recurrent layers do that keep their state.

    A variable that is read after it is assigned is left out: it is no state but a computed value, such as the kernel
    to which a wrapper applies its pruning mask in each call.
    """
    assigned = {node.name: node for node in nodes if node.op == "AssignVariableOp"}
    updates = {}
    for node in assigned.values():
        variable = node.input[0].split(":")[0]
        if variable in names:
            updates[variable] = Update(names[variable], node.input[1])
    for node in nodes:
        before = [assigned.get(reference[1:]) for reference in node.input if reference.startswith("^")]
        if node.op == "ReadVariableOp" and any(a is not None and a.input[0] == node.input[0] for a in before):
            updates.pop(node.input[0].split(":")[0], None)
    return updates


def _numpy(variable: Any) -> np.ndarray:
    return variable.numpy()


def _dims(shape: tf.TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


def _layer_names(model: Any, nodes: Sequence[str]) -> LayerNames:
    known = {layer.name for layer in _all_layers(model)} - {model.name}
    scopes = {name.split("/")[0] for name in nodes if "/" in name}
    numbered = model.name not in scopes and model.name in {without_number(scope) for scope in scopes}
    return LayerNames(known, numbered, {model.name})


def _all_layers(model: Any) -> Iterator[Any]:
    if hasattr(model, "_flatten_layers"):
        yield from model._flatten_layers()
    else:
        yield from model.submodules


# ---- inputs ----


def _inputs(model: Any) -> tuple[Any, list[str]]:
    """TensorSpecs in the structure in which the model takes them, and the inputs' names in the flat order."""
    if getattr(model, "inputs", None):
        return _declared_inputs(model)
    return _recorded_inputs(model)


def _declared_inputs(model: Any) -> tuple[Any, list[str]]:
    """Those of functional and sequential models."""
    if hasattr(model, "_inputs_struct"):  # Keras 3, functional
        structure = model._inputs_struct
    elif hasattr(model, "_nested_inputs"):  # tf_keras
        structure = model._nested_inputs
    else:
        structure = model.inputs[0] if len(model.inputs) == 1 else list(model.inputs)
    names = {id(tensor): name for tensor, name in zip(model.inputs, _input_names(model), strict=True)}
    specs = tf.nest.map_structure(lambda tensor: _spec(tensor.shape, tensor.dtype), structure)
    flat = tf.nest.flatten(structure)
    keys = list(structure) if isinstance(structure, dict) else None
    if keys is not None and len(keys) == len(flat):
        return specs, [str(key) for key in sorted(keys)]
    return specs, [names.get(id(tensor), f"input_{index}") for index, tensor in enumerate(flat)]


def _input_names(model: Any) -> list[str]:
    names = getattr(model, "input_names", None) or [tensor.name.split(":")[0] for tensor in model.inputs]
    return _distinct(names)


def _recorded_inputs(model: Any) -> tuple[Any, list[str]]:
    """Those of subclassed models: what they were called with."""
    advice = f"call model '{model.name}' on a batch of data once, so that its inputs are known, and convert it then"
    if module_of(model) == "tf_keras":
        spec = getattr(model, "save_spec", lambda: None)()
        if spec is None:
            raise ConversionError(f"the model's inputs are unknown: {advice}")
        ((structure, *_), _) = spec
        structure = tf.nest.map_structure(lambda s: _spec((None, *s.shape[1:]), s.dtype), structure)
    else:
        shapes = getattr(model, "_build_shapes_dict", None)
        if not shapes or not model.built:
            raise ConversionError(f"the model's inputs are unknown: {advice}")
        dtype = getattr(model, "input_dtype", None) or tf.float32
        structures = [_specs_of_shapes(shape, dtype) for shape in shapes.values()]
        structure = structures[0] if len(structures) == 1 else structures
    flat = tf.nest.flatten(structure)
    if isinstance(structure, dict):
        return structure, [str(key) for key in sorted(structure)]
    return structure, ["input"] if len(flat) == 1 else [f"input_{index}" for index in range(len(flat))]


def _specs_of_shapes(shapes: Any, dtype: Any) -> Any:
    if isinstance(shapes, dict):
        return {key: _specs_of_shapes(value, dtype) for key, value in shapes.items()}
    if all(size is None or isinstance(size, int) for size in shapes):
        return _spec((None, *shapes[1:]), dtype)
    return [_specs_of_shapes(value, dtype) for value in shapes]


def _spec(shape: Any, dtype: Any) -> tf.TensorSpec:
    return tf.TensorSpec(shape, dtype)


# ---- outputs ----


def _flatten(structure: Any) -> Iterator[tuple[str, Any]]:
    """(name, tensor) in declared order: keys of dicts as they were inserted, "" where nothing names the tensor."""
    if isinstance(structure, dict):
        for key, value in structure.items():
            for inner, tensor in _flatten(value):
                yield "/".join(part for part in (str(key), inner) if part), tensor
    elif isinstance(structure, (list, tuple)):
        for value in structure:
            yield from _flatten(value)
    else:
        yield "", structure


def _output_names(model: Any, keys: Sequence[str]) -> list[str]:
    """Keys of a dict of outputs, else the names of the layers that compute them, else output_0, output_1."""
    if keys and all(keys):
        return _distinct(keys)
    declared = getattr(model, "output_names", None) or []
    if len(declared) != len(keys) and getattr(model, "outputs", None):
        declared = [getattr(getattr(t, "_keras_history", (None,))[0], "name", "") for t in model.outputs]
    if len(declared) == len(keys) and all(declared):
        return _distinct(declared)
    return [f"output_{index}" for index in range(len(keys))]


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, a repeated one numbered: "dense", "dense_1"."""
    result: list[str] = []
    for name in names:
        number, candidate = 0, name
        while candidate in result:
            number += 1
            candidate = f"{name}_{number}"
        result.append(candidate)
    return result
