"""Attributes of TensorFlow nodes as Python values, with the defaults that files leave out."""

from __future__ import annotations

from functools import cache
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from converter.frontends.tensorflow import dtypes


@cache
def definition(op: str) -> Any | None:
    """The OpDef, None for an op that this TensorFlow does not know (a custom one)."""
    return op_def_registry.get(op)


def attribute(node: Any, name: str) -> Any:
    """The attribute's value: int, float, bool, str, numpy dtype, numpy array, function name, or a list of those; None
    if there is none.
    """
    if name in node.attr:
        return _decode(node.attr[name])
    known = definition(node.op)
    for declared in known.attr if known is not None else ():
        if declared.name == name and declared.HasField("default_value"):
            return _decode(declared.default_value)
    return None


def output_index(node: Any, argument: str, index: int) -> int:
    """Which output "node:argument:index" of a function body is, counted through all of the node's outputs."""
    known = definition(node.op)
    before = 0
    for declared in known.output_arg if known is not None else ():
        if declared.name == argument:
            return before + index
        if declared.number_attr:
            before += attribute(node, declared.number_attr)
        elif declared.type_list_attr:
            before += len(node.attr[declared.type_list_attr].list.type)
        else:
            before += 1
    return before + index


def _decode(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "list":
        fields = value.list.ListFields()
        if not fields:
            return []
        field, items = fields[0]
        return [_scalar(field.name, item) for item in items]
    return None if kind is None else _scalar(kind, getattr(value, kind))


def _scalar(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode(errors="replace")
    if kind == "type":
        return dtypes.from_enum(value)
    if kind == "tensor":
        return tf.make_ndarray(value)
    if kind == "shape":
        return None if value.unknown_rank else tuple(None if d.size < 0 else d.size for d in value.dim)
    if kind == "func":
        return value.name
    return value
