"""What PAD, PADV2 and MIRROR_PAD share: the padded shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from schema.graph import Shape, TensorType
from schema.ops.base import Arrays
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import merge, pairs

Pair = tuple[int, int]


def infer_padded(op: str, inputs: Sequence[TensorType], values: Arrays) -> tuple[Shape | None, list[Pair] | None]:
    """(shape of the padded x, paddings where known) for (x, paddings int[rank, 2], ...)."""
    x, paddings = inputs[0], inputs[1]
    require_dtype(op, "input", x, ANY)
    amounts = pairs(op, inputs, values, 1, "paddings")
    rank = merge(x.rank, None if paddings.shape is None else paddings.shape[0], "ranks of x and paddings")
    if rank is None:
        return None, amounts
    if x.shape is None or amounts is None:
        return (None,) * rank, amounts
    return tuple(None if d is None else d + b + a for d, (b, a) in zip(x.shape, amounts, strict=True)), amounts


def zero_of(tensor: TensorType) -> int:
    """What stands for the real 0 in a tensor: its zero point."""
    return 0 if tensor.quantization is None else int(tensor.quantization.zero_point[0])


def pad(x: np.ndarray, paddings: ArrayLike, mode: str = "constant", **options) -> np.ndarray:
    """np.pad, for scalars too."""
    return np.pad(x, np.asarray(paddings, np.int64), mode, **options) if x.ndim else x  # type: ignore[call-overload]
