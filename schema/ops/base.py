"""What every op of the schema declares: attributes, shape and dtype inference, and the normative numpy reference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from schema.errors import ShapeError
from schema.graph import TensorType

Types = Sequence["TensorType | None"]
Arrays = Sequence["np.ndarray | None"]


class Op:
    """One op. Subclasses are never instantiated: everything is a class method.

    name: the OpCode in xnn.fbs. Attributes: a frozen dataclass named and laid out as its table in xnn.fbs, or None.
    inputs: (fewest, most) inputs, most None for any number. outputs: how many outputs (None: depends on attributes).
    """

    name: ClassVar[str]
    Attributes: ClassVar[type | None] = None
    inputs: ClassVar[tuple[int, int | None]] = (1, 1)
    outputs: ClassVar[int | None] = 1

    @classmethod
    def check(cls, attributes: Any) -> None:
        """Raise ShapeError when attributes make no sense whatever the inputs (stride 0, unknown padding)."""

    @classmethod
    def infer(cls, attributes: Any, inputs: Types, values: Arrays) -> list[TensorType]:
        """Output types from input types (dims of None are unknown) and the values of those inputs that are known.

        Quantization of outputs is declared by the file, not inferred: it is None in what this returns.
        Raises ShapeError, naming the numbers, for inputs that do not fit together.
        """
        raise NotImplementedError(cls.name)

    @classmethod
    def macs(cls, attributes: Any, inputs: Types, outputs: Sequence[TensorType]) -> int:
        """Multiply-accumulates of one run, all shapes being known; 0 for ops that are not sums of products.

        Products with padding count, as they do where others count.
        """
        return 0

    @classmethod
    def reference(
        cls, attributes: Any, arrays: Arrays, inputs: Types, outputs: Sequence[TensorType]
    ) -> list[np.ndarray]:
        """The normative result. `inputs` and `outputs` give the quantization of each.

        Integers follow the TFLite int8 specification, bit by bit as LiteRT's reference kernels.
        `outputs` shapes may be unknown; their dtype and quantization are what the result must have.
        """
        raise NotImplementedError(cls.name)


def run(
    op: type[Op], attributes: Any, arrays: Arrays, inputs: Types, outputs: Sequence[TensorType]
) -> list[np.ndarray]:
    """The op's reference, but nothing is computed where all outputs are empty: what a reference allocates on the way
    follows dimensions, and a hostile file can have any beside a dimension of 0.
    """
    if outputs and all(kind.is_static and 0 in (kind.shape or ()) for kind in outputs):
        return [np.empty([d or 0 for d in kind.shape or ()], kind.dtype) for kind in outputs]
    return op.reference(attributes, arrays, inputs, outputs)


def element_count(kind: TensorType) -> int:
    """How many elements a tensor of known shape has."""
    return math.prod(dim or 0 for dim in kind.shape or ())


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ShapeError(message)


def attribute_dict(attributes: Any) -> dict[str, Any]:
    """Attributes as a dict, {} for ops that have none."""
    return {} if attributes is None else {f.name: getattr(attributes, f.name) for f in dataclasses.fields(attributes)}
