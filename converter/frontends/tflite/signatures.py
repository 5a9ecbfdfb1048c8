"""Which subgraph of the file is the model, and what its inputs and outputs are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from converter.frontends.tflite.file import File
from schema.errors import FormatError, InputError

DEFAULT = "serving_default"


@dataclass(frozen=True)
class Signature:
    """inputs, outputs: tensor index -> name, for those that the file's signature names."""

    name: str = DEFAULT
    subgraph: int = 0
    inputs: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, str] = field(default_factory=dict)


def choose(file: File, wanted: str | None) -> Signature:
    """The signature of that name; by default "serving_default", or the only one, or the first subgraph as it stands.

    Raises InputError where the name is none of the file's, or where there is a choice and none is named.
    """
    stored = [_read(file, raw, f"signature {i}") for i, raw in enumerate(file.root["signature_defs"] or [])]
    names = ", ".join(f"'{s.name}'" for s in stored) or "none"
    for signature in stored:
        if signature.name == (wanted or DEFAULT):
            return signature
    if wanted is not None:
        raise InputError(f"there is no signature '{wanted}'; the file has {names}")
    if len(stored) > 1:
        raise InputError(f"the file has the signatures {names}: choose one")
    return stored[0] if stored else Signature()


def names(signature: Mapping[int, str], indices: Sequence[int], tensors: Sequence[str]) -> list[str]:
    """A name for each of the subgraph's inputs, or outputs: the signature's, else the tensor's, made distinct."""
    result: list[str] = []
    for index, tensor in zip(indices, tensors, strict=True):
        result.append(distinct(signature.get(index, tensor), result))
    return result


def distinct(name: str, taken: Sequence[str]) -> str:
    """The name, with a number behind it where it is taken."""
    free, count = name, 1
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    return free


def _read(file: File, raw: dict[str, Any], place: str) -> Signature:
    if raw["subgraph_index"] >= len(file.subgraphs):
        raise FormatError(f"{place}: subgraph {raw['subgraph_index']} is none of the {len(file.subgraphs)} there are")
    subgraph = file.subgraphs[raw["subgraph_index"]]
    ends = []
    for kind in ("inputs", "outputs"):
        there = set() if subgraph[kind] is None else set(subgraph[kind].tolist())
        entries = raw[kind] or []
        for entry in entries:
            if entry["tensor_index"] not in there:
                raise FormatError(f"{place}: tensor {entry['tensor_index']} is none of the subgraph's {kind}")
        called = [entry["name"] for entry in entries if entry["name"]]
        if len(set(called)) < len(called):
            raise FormatError(f"{place}: two of its {kind} have one name of {called}")
        ends.append({entry["tensor_index"]: entry["name"] or "" for entry in entries if entry["name"]})
    return Signature(raw["signature_key"] or DEFAULT, raw["subgraph_index"], *ends)
