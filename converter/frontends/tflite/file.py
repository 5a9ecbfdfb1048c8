"""A `.tflite` file as Python dicts, every offset and index of its tables verified.

Raises FormatError, with the place, for anything that is not a sound file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from converter.frontends.tflite.layout import IDENTIFIER, layout
from converter.frontends.tflite.package import operators
from schema.errors import FormatError, UnsupportedError
from schema.flatbuffer import Reader

VERSION = 3


class Operator(NamedTuple):
    """Which operator a node runs. name: its builtin name, or "CUSTOM"; custom: the name of a custom one."""

    name: str
    version: int
    custom: str = ""


@dataclass(frozen=True)
class File:
    """data: the whole file. root: its Model table."""

    data: memoryview
    root: dict[str, Any]
    operators: list[Operator]

    @property
    def subgraphs(self) -> list[dict[str, Any]]:
        return self.root["subgraphs"]

    def operator(self, index: int, place: str) -> Operator:
        if index >= len(self.operators):
            raise FormatError(f"{place}: operator code {index} is none of the {len(self.operators)} there are")
        return self.operators[index]

    def buffer(self, index: int, place: str) -> np.ndarray | None:
        """The bytes of a buffer, None where it holds none: buffer 0 never does."""
        buffers = self.root["buffers"] or []
        if index >= len(buffers):
            raise FormatError(f"{place}: buffer {index} is none of the {len(buffers)} there are")
        raw = buffers[index]
        if index == 0 or raw["offset"] <= 1:  # 0 and 1 mean that the data are in the table
            return None if index == 0 else raw["data"]
        if raw["offset"] > len(self.data) or raw["size"] > len(self.data) - raw["offset"]:
            end = raw["offset"] + raw["size"]
            raise FormatError(f"{place}: bytes {raw['offset']} to {end} are outside of the {len(self.data)} there are")
        return np.frombuffer(self.data, np.uint8, raw["size"], raw["offset"])


def parse(data: bytes | bytearray | memoryview) -> File:
    """The file's content."""
    view = memoryview(data).cast("B")
    root = Reader(view, layout()).root("Model", IDENTIFIER)
    if root["version"] != VERSION:
        raise UnsupportedError(f"the file has version {root['version']} of the TFLite format; {VERSION} is read here")
    if not root["subgraphs"]:
        raise FormatError("the file holds no subgraph")
    codes = [_operator(raw, i) for i, raw in enumerate(root["operator_codes"] or [])]
    return File(view, root, codes)


def _operator(raw: dict[str, Any], index: int) -> Operator:
    # The old 8-bit field says 127 of operators whose number does not fit it.
    code = max(raw["deprecated_builtin_code"], raw["builtin_code"])
    if code < 0:
        raise FormatError(f"operator code {index}: a builtin operator of number {code}")
    name = operators().get(code, f"number {code}")
    return Operator(name, raw["version"], (raw["custom_code"] or "?") if name == "CUSTOM" else "")
