"""The checkpoint of a SavedModel: which entry belongs to which variable of the program, and its value.

TensorFlow 2 saves a graph of objects twice, in the program and in the checkpoint; the same path from the root leads
to the same variable (tensorflow/core/protobuf: saved_object_graph.proto, trackable_object_graph.proto). TensorFlow 1
has a subgraph of RestoreV2 and Assign nodes (saver.proto).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from converter.frontends.tensorflow.attributes import attribute
from schema.errors import ConversionError, FormatError

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "VARIABLE_VALUE"
CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
ASSIGNMENTS = frozenset(("AssignVariableOp", "Assign"))
DAMAGE = (tf.errors.OpError, RuntimeError, ValueError, IndexError, KeyError)
"""What TensorFlow raises for checkpoints that it cannot read."""


class Checkpoint:
    """Values of a program's variables. Nothing is opened before a value is asked for."""

    def __init__(self, prefix: Path, meta: Any):
        self.prefix, self._meta = prefix, meta

    def value(self, variable: str) -> np.ndarray:
        """The value of the variable whose node is called so. Raises FormatError where it cannot be read."""
        try:
            key = self._keys.get(variable)
            if key is not None:
                return self._reader.get_tensor(key)
        except DAMAGE as error:
            if isinstance(error, FormatError):
                raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise FormatError(
                f"{self.prefix}.*: variable '{variable}' cannot be read, the files are damaged ({reason})"
            ) from None
        raise FormatError(f"{self.prefix}.*: nothing says where variable '{variable}' is stored; save the model again")

    @cached_property
    def _reader(self) -> Any:
        return tf.train.load_checkpoint(str(self.prefix))

    @cached_property
    def _keys(self) -> dict[str, str]:
        nodes = {node.name: node for node in self._meta.graph_def.node}
        if len(self._meta.object_graph_def.nodes) and self._reader.has_tensor(OBJECT_GRAPH):
            stored = TrackableObjectGraph.FromString(self._reader.get_tensor(OBJECT_GRAPH))
            return object_keys(self._meta.object_graph_def, stored, nodes)
        return restored_keys(nodes)


def object_keys(saved: Any, stored: Any, nodes: Mapping[str, Any]) -> dict[str, str]:
    """Checkpoint key by variable node, from the two graphs of objects.

    Calls of functions tell which node is which object: what a function captures is the last of its arguments.
    """
    keys: dict[int, str] = {}
    seen, queue = {0}, [(0, 0)]
    while queue:
        ours, theirs = queue.pop()
        for entry in stored.nodes[theirs].attributes:
            if entry.name == VALUE:
                keys[ours] = entry.checkpoint_key
        children = {child.local_name: child.node_id for child in stored.nodes[theirs].children}
        for child in saved.nodes[ours].children:
            if child.local_name in children and child.node_id not in seen:
                seen.add(child.node_id)
                queue.append((child.node_id, children[child.local_name]))
    result = {}
    for node in nodes.values():
        function = saved.concrete_functions.get(attribute(node, "f")) if node.op in CALLS else None
        if function is not None and function.bound_inputs:
            captured = [_node(reference) for reference in node.input if not reference.startswith("^")]
            captured = captured[-len(function.bound_inputs) :]
            result.update({n: keys[i] for n, i in zip(captured, function.bound_inputs, strict=True) if i in keys})
    return result


def restored_keys(nodes: Mapping[str, Any]) -> dict[str, str]:
    """Checkpoint key by variable node, from what a TensorFlow 1 graph assigns when it restores."""
    keys = {}
    for node in nodes.values():
        if node.op in ASSIGNMENTS:
            reference = node.input[1]
            while _node(reference) in nodes and nodes[_node(reference)].op == "Identity":
                reference = nodes[_node(reference)].input[0]
            key = _restored(nodes, reference)
            if key is not None:
                keys[_node(node.input[0])] = key
    return keys


def _restored(nodes: Mapping[str, Any], reference: str) -> str | None:
    """The key that an output of a RestoreV2 node reads."""
    restore = nodes.get(_node(reference))
    if restore is None or restore.op != "RestoreV2":
        return None
    index = int(reference.rpartition(":")[2]) if ":" in reference else 0
    names, slices = (_strings(nodes, given) for given in restore.input[1:3])
    if names is None:
        return None
    if slices is not None and slices[index]:
        raise ConversionError("variables split over several devices are not supported; save the model unsplit")
    return names[index].decode()


def _strings(nodes: Mapping[str, Any], reference: str) -> np.ndarray | None:
    node = nodes.get(_node(reference))
    return None if node is None or node.op != "Const" else np.ravel(tf.make_ndarray(node.attr["value"].tensor))


def _node(reference: str) -> str:
    return reference.split(":")[0].lstrip("^")
