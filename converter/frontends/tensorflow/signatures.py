"""Names and order of a signature's inputs and outputs.

A signature is a map, without order; the function behind it has the order in which the model declares its inputs and
outputs. Keras 3 calls outputs "output_0", "output_1": there the layers that compute them give the names, which are
those that the model object has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from converter.frontends.tensorflow.attributes import attribute
from converter.frontends.tensorflow.program import Port, Program

CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
_NUMBERED = re.compile(r"output_(\d+)$")


def declared_order(entry: Any, nodes: Mapping[str, Any], functions: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(input names, output names) of a SignatureDef, in the order in which the model has them."""
    inputs, outputs = sorted(entry.inputs), sorted(entry.outputs)
    calls = {_split(entry.outputs[name].name)[0] for name in outputs}
    call = nodes.get(next(iter(calls))) if len(calls) == 1 else None
    wrapper = functions.get(attribute(call, "f")) if call is not None and call.op in CALLS else None
    inner = [node for node in wrapper.node_def if node.op in CALLS] if wrapper is not None else []
    if call is None or wrapper is None or len(inner) != 1:
        return inputs, outputs
    arguments = [argument.name for argument in wrapper.signature.input_arg]
    given = {argument: _split(reference)[0] for argument, reference in zip(arguments, call.input, strict=False)}
    called = [given.get(_split(reference)[0]) for reference in inner[0].input if not reference.startswith("^")]
    identities = {node.name: node for node in wrapper.node_def if node.op == "Identity"}

    def input_position(name: str) -> int:
        placeholder = _split(entry.inputs[name].name)[0]
        return called.index(placeholder) if placeholder in called else len(called)

    def output_position(name: str) -> int:
        argument = wrapper.signature.output_arg[_split(entry.outputs[name].name)[1]].name
        reference = wrapper.ret[argument]
        while _split(reference)[0] in identities:
            reference = identities[_split(reference)[0]].input[0]
        return _split(reference)[1]

    return sorted(inputs, key=input_position), sorted(outputs, key=output_position)


def layer_outputs(program: Program, nodes: Mapping[str, Any], declared: Sequence[str]) -> list[Port]:
    """The program's outputs in the `declared` order if it names them all; numbered ones renamed by the layers that
    compute them.
    """
    by_name = {port.name: port for port in program.outputs}
    if set(declared) == set(by_name) and len(declared) == len(by_name):
        return [by_name[name] for name in declared]
    if not all(_NUMBERED.match(port.name) for port in program.outputs):
        return program.outputs
    layers = [_layer(program, nodes, port.reference) for port in program.outputs]
    if None in layers or len(set(layers)) < len(layers):
        return program.outputs
    return [replace(port, name=layer) for port, layer in zip(program.outputs, layers, strict=True)]


def _layer(program: Program, nodes: Mapping[str, Any], reference: str) -> str | None:
    """The outermost layer that computes a tensor, None for a node outside of all layers."""
    while True:
        name, index = _split(reference)
        node = nodes.get(name)
        if node is None:
            return None
        if node.op == "Identity" and "/" not in name:
            reference = node.input[0]
        elif node.op in CALLS and "/" not in name:
            function = program.functions.get(attribute(node, "f"))
            if function is None:
                return None
            nodes = {inner.name: inner for inner in function.node_def}
            reference = function.ret[function.signature.output_arg[index].name]
        else:
            return program.layers.layer(name).split("/")[0] if "/" in name else None


def _split(reference: str) -> tuple[str, int]:
    """("node", output index) of "node", "node:1" or "node:output:1"."""
    name, *rest = reference.split(":")
    return name, int(rest[-1]) if rest else 0
