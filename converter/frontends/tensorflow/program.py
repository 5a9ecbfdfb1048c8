"""A TensorFlow program ready to be read: nodes, functions, named inputs and outputs, and where variables have their
values.

A traced Keras model and a SavedModel's signature both become one of these: nothing is frozen or rewritten in
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from converter.frontends.tensorflow.names import LayerNames
from schema.graph import Shape


@dataclass(frozen=True)
class Port:
    """A named input or output. `reference` is TensorFlow's name of the tensor, "Identity:0"; dtype and shape are an
    input's.
    """

    name: str
    reference: str
    dtype: np.dtype | None = None
    shape: Shape | None = None


@dataclass(frozen=True)
class Update:
    """name: of the variable. reference: of the tensor that is its value in the next run."""

    name: str
    reference: str


@dataclass
class Program:
    """What `graph_reader.read` reads.

    nodes: NodeDefs of the outermost graph. functions: FunctionDefs by name. variables: for each node that stands for
    a variable (a VarHandleOp, a captured placeholder), what gives its value; other captured placeholders are in
    `captured`, with their value. updates: of the variables that the program assigns, by their node's name.
    """

    nodes: Sequence[Any]
    functions: Mapping[str, Any]
    inputs: list[Port]
    outputs: list[Port]
    layers: LayerNames
    variables: Mapping[str, Callable[[], np.ndarray]] = field(default_factory=dict)
    captured: Mapping[str, np.ndarray] = field(default_factory=dict)
    updates: Mapping[str, Update] = field(default_factory=dict)
    name: str = "serving_default"
