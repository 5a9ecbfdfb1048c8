"""A SavedModel folder read as it lies: the program from saved_model.pb, variables from the checkpoint beside it.

TensorFlow's loader would rebuild every function and Python object; none of them is needed. Format:
tensorflow/core/protobuf/saved_model.proto and meta_graph.proto.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from converter.frontends.tensorflow import dtypes
from converter.frontends.tensorflow.checkpoints import Checkpoint
from converter.frontends.tensorflow.names import LayerNames
from converter.frontends.tensorflow.program import Port, Program
from converter.frontends.tensorflow.signatures import declared_order, layer_outputs
from schema.errors import ConversionError, FormatError, InputError

PROGRAM = "saved_model.pb"
DEFAULT = "serving_default"
INTERNAL = "__saved_model_init_op"
VARIABLES = frozenset(("VarHandleOp", "VariableV2", "Variable"))
NAMELESS = frozenset(("Const", "Placeholder", "ReadVariableOp", "Identity", "NoOp", *VARIABLES))
"""Ops whose nodes may lie outside of every layer's scope."""


def load(folder: Path, signature: str | None = None) -> Program:
    """The program behind a signature (default: serving_default, or the only one there is).

    Raises ConversionError for a folder that is no SavedModel, FormatError for one that is damaged, InputError for a
    signature that it does not have.
    """
    meta = _inference_graph(folder)
    name, entry = _signature(folder, meta.signature_def, signature)
    nodes = {node.name: node for node in meta.graph_def.node}
    functions = {function.signature.name: function for function in meta.graph_def.library.function}
    layers = LayerNames.guess(_node_names(entry, nodes, functions), _variable_names(nodes), _keras_layers(folder))
    inputs, outputs = declared_order(entry, nodes, functions)
    program = Program(
        nodes=meta.graph_def.node,
        functions=functions,
        inputs=[_port(port, entry.inputs[port]) for port in inputs],
        outputs=[Port(port, entry.outputs[port].name) for port in outputs],
        layers=layers,
        variables=_variables(folder, meta, nodes),
        name=name,
    )
    program.outputs = layer_outputs(program, nodes, _keras_outputs(folder))
    return program


def _inference_graph(folder: Path) -> Any:
    path = folder / PROGRAM
    if not path.is_file():
        hint = f"; it has {PROGRAM}txt, which is not read: save it again" if Path(f"{path}txt").is_file() else ""
        raise ConversionError(f"{folder} is no SavedModel: there is no {PROGRAM} in it{hint}")
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        raise FormatError(f"{path} is damaged: it cannot be read as a SavedModel") from None
    graphs = [meta for meta in model.meta_graphs if "serve" in meta.meta_info_def.tags] or list(model.meta_graphs)
    if not graphs:
        raise FormatError(f"{path} is damaged: it holds no graph")
    return graphs[0]


def _signature(folder: Path, signatures: Mapping[str, Any], wanted: str | None) -> tuple[str, Any]:
    names = sorted(name for name in signatures if name != INTERNAL)
    if not names:
        raise ConversionError(f"{folder} has no signatures; save it with Keras's model.export(), or name `signatures=`")
    if wanted is None:
        wanted = DEFAULT if DEFAULT in names else names[0] if len(names) == 1 else None
        if wanted is None:
            raise InputError(f"{folder} has several signatures: name one of {', '.join(names)} (--signature)")
    if wanted not in names:
        raise InputError(f"{folder} has no signature '{wanted}': there are {', '.join(names)}")
    return wanted, signatures[wanted]


def _port(name: str, info: Any) -> Port:
    shape = info.tensor_shape
    dims = None if shape.unknown_rank else tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
    return Port(name, info.name, dtypes.from_enum(info.dtype), dims)


def _node_names(entry: Any, nodes: Mapping[str, Any], functions: Mapping[str, Any]) -> list[str]:
    """Of the functions that the signature calls, in the scopes of the calls, or of the whole graph where it calls none
    (TensorFlow 1).
    """
    called: list[str] = []
    pending = [("", nodes.get(info.name.split(":")[0])) for info in entry.outputs.values()]
    seen: set[str] = set()
    while pending:
        scope, node = pending.pop()
        function = node.attr["f"].func.name if node is not None and "f" in node.attr else ""
        if function not in functions or function in seen:
            continue
        seen.add(function)
        for inner in functions[function].node_def:
            name = f"{scope}{inner.name}"
            if inner.op not in NAMELESS:
                called.append(name)
            pending.append((name[: name.rfind("/") + 1], inner))
    return called or [node.name for node in nodes.values() if node.op not in NAMELESS]


def _variable_names(nodes: Mapping[str, Any]) -> list[str]:
    return [node.name for node in nodes.values() if node.op in VARIABLES]


def _variables(folder: Path, meta: Any, nodes: Mapping[str, Any]) -> dict[str, Callable[[], np.ndarray]]:
    checkpoint = Checkpoint(folder / "variables" / "variables", meta)
    return {name: partial(checkpoint.value, name) for name in _variable_names(nodes)}


# ---- what tf_keras writes beside the program ----


def _keras_metadata(folder: Path) -> list[dict[str, Any]]:
    """Descriptions of a tf_keras model and its layers, outermost first; [] where the file is absent or of another
    format.
    """
    path = folder / "keras_metadata.pb"
    if not path.is_file():
        return []
    from tf_keras.protobuf.saved_metadata_pb2 import SavedMetadata

    metadata = SavedMetadata()
    try:
        metadata.ParseFromString(path.read_bytes())
        return [json.loads(node.metadata) for node in metadata.nodes]
    except (DecodeError, ValueError):
        return []


def _keras_layers(folder: Path) -> set[str] | None:
    """Names of all layers."""
    names = {description.get("name") for description in _keras_metadata(folder)}
    return {name for name in names if name} or None


def _keras_outputs(folder: Path) -> list[str]:
    """Output names in declared order, [] where they are unknown."""
    for description in _keras_metadata(folder)[:1]:
        outputs = description.get("config", {}).get("output_layers") or []
        if isinstance(outputs, dict):
            return list(outputs)
        if outputs and isinstance(outputs[0], str):
            outputs = [outputs]
        return [output[0] for output in outputs]
    return []
