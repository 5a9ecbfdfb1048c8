"""Operators that are the schema's by name, operands and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converter.frontends.tflite.reading import READERS, Reader, Reading

# Without options that are read.
PLAIN = """
MAXIMUM MINIMUM SQUARED_DIFFERENCE POW
EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT
ABS NEG SIGN EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND
RELU RELU6 RELU_N1_TO_1 PRELU HARD_SWISH LOGISTIC TANH
TRANSPOSE SLICE PAD PADV2 TILE GATHER_ND EXPAND_DIMS RANK FILL RANGE BROADCAST_TO REVERSE_V2 SPACE_TO_BATCH_ND
BATCH_TO_SPACE_ND SELECT_V2 TOPK_V2 WHERE SCATTER_ND
""".split()

Attributes = Callable[[Reading], dict[str, Any]]


def _options(**names: str) -> Attributes:
    """Our attribute = TFLite's option."""
    return lambda reading: {ours: reading.options[theirs] for ours, theirs in names.items()}


_RESIZING = _options(align_corners="align_corners", half_pixel_centers="half_pixel_centers")

# op: (options table, attributes of a reading)
WITH_OPTIONS: dict[str, tuple[str, Attributes]] = {
    "MUL": ("MulOptions", Reading.activation),
    "DIV": ("DivOptions", Reading.activation),
    "LEAKY_RELU": ("LeakyReluOptions", _options(alpha="alpha")),
    "GELU": ("GeluOptions", _options(approximate="approximate")),
    "SOFTMAX": ("SoftmaxOptions", _options(beta="beta")),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        _options(radius="radius", bias="bias", alpha="alpha", beta="beta"),
    ),
    "MIRROR_PAD": ("MirrorPadOptions", _options(mode="mode")),
    "GATHER": ("GatherOptions", _options(axis="axis", batch_dims="batch_dims")),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", _options(block_size="block_size")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", _options(block_size="block_size")),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _RESIZING),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _RESIZING),
    "ONE_HOT": ("OneHotOptions", _options(axis="axis")),
    "PACK": ("PackOptions", _options(axis="axis")),
    "UNPACK": ("UnpackOptions", _options(num="num", axis="axis")),
    "SPLIT": ("SplitOptions", _options(num="num_splits")),
    "SPLIT_V": ("SplitVOptions", _options(num="num_splits")),
}


def _reader(op: str, options: str | None, attributes: Attributes) -> Reader:
    return Reader(options, lambda reading: reading.emit(op, reading.inputs, **attributes(reading)))


READERS.update((op, _reader(op, None, lambda reading: {})) for op in PLAIN)
READERS.update((op, _reader(op, options, attributes)) for op, (options, attributes) in WITH_OPTIONS.items())
