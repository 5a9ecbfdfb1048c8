"""What the file layer and the coders exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stream:
    """A run of bytes and how they stand for numbers (`Coding` of xnn.fbs).

    With a `step`, the bytes stand for int8, and the numbers are floats: these times `step`.
    """

    data: bytes | memoryview
    coding: str = "RAW"
    bits: int = 0
    step: float = 0.0


@dataclass(frozen=True)
class EncodedConstant:
    """A stored tensor as streams: the fields of table Constant of xnn.fbs, `kernel` aside."""

    dtype: np.dtype
    values: Stream
    codebook: Stream | None = None
    positions: Stream | None = None
    nonzeros: int = 0
    channel_scale: Stream | None = None
    axis: int = 0
    scale_factor: float = 0.0
    factor: float = 0.0

    def streams(self) -> Iterator[tuple[str, Stream]]:
        for name in ("values", "codebook", "positions", "channel_scale"):
            stream = getattr(self, name)
            if stream is not None:
                yield name, stream
