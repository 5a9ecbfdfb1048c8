"""Attributes of the schema's ops as the options tables of TFLite's file format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as tfl

DTYPES: dict[np.dtype, int] = {
    np.dtype(name.lower().replace("bool", "bool_") if name != "BOOL" else "?"): getattr(tfl.TensorType, name)
    for name in "FLOAT16 FLOAT32 FLOAT64 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 BOOL".split()
}


def _padding(a: Any) -> dict[str, Any]:
    return {"padding": getattr(tfl.Padding, a.padding)}


def _activation(a: Any) -> dict[str, Any]:
    return {"fusedActivationFunction": getattr(tfl.ActivationFunctionType, a.activation)}


def _along(a: Any, kind: str, axes: str, field: str) -> dict[str, Any]:
    names = {"d": "D", "h": "H", "w": "W"}
    return {field.format(names[axis]): getattr(a, f"{kind}_{axis}") for axis in axes}


def _convolution(a: Any, axes: str = "hw") -> dict[str, Any]:
    dilations = _along(a, "dilation", axes, "dilation{}Factor")
    return _padding(a) | _activation(a) | _along(a, "stride", axes, "stride{}") | dilations


def _transpose_conv(a: Any) -> dict[str, Any]:
    return _padding(a) | _activation(a) | _along(a, "stride", "hw", "stride{}")


def _pool(a: Any) -> dict[str, Any]:
    sizes = {"filterHeight": a.filter_h, "filterWidth": a.filter_w}
    return _padding(a) | _activation(a) | _along(a, "stride", "hw", "stride{}") | sizes


def _same(**fields: str) -> Callable[[Any], dict[str, Any]]:
    """TFLite's field = ours, by name."""
    return lambda a: {theirs: getattr(a, ours) for theirs, ours in fields.items()}


VERSIONS = {"BROADCAST_TO": 2}
"""The first version that LiteRT has a kernel for, where it is not 1."""

_resize = _same(alignCorners="align_corners", halfPixelCenters="half_pixel_centers")


def _none(a: Any) -> dict[str, Any]:
    return {}


# op: (options table, its fields from the attributes). Ops that are missing have no options.
OPTIONS: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "CONV_2D": ("Conv2DOptions", _convolution),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", _convolution),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _transpose_conv),
    "CONV_3D": ("Conv3DOptions", lambda a: _convolution(a, "dhw")),
    "CONV_3D_TRANSPOSE": ("Conv3DOptions", lambda a: _convolution(a, "dhw")),
    "FULLY_CONNECTED": ("FullyConnectedOptions", lambda a: _activation(a) | {"keepNumDims": a.keep_num_dims}),
    "BATCH_MATMUL": ("BatchMatMulOptions", _same(adjX="adj_x", adjY="adj_y")),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _pool),
    "MAX_POOL_2D": ("Pool2DOptions", _pool),
    "ADD": ("AddOptions", _activation),
    "SUB": ("SubOptions", _activation),
    "MUL": ("MulOptions", _activation),
    "DIV": ("DivOptions", _activation),
    "LEAKY_RELU": ("LeakyReluOptions", _same(alpha="alpha")),
    "GELU": ("GeluOptions", _same(approximate="approximate")),
    "SOFTMAX": ("SoftmaxOptions", _same(beta="beta")),
    "L2_NORMALIZATION": ("L2NormOptions", _none),
    **{
        op: ("ReducerOptions", _same(keepDims="keep_dims"))
        for op in "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL".split()
    },
    "ARG_MAX": ("ArgMaxOptions", lambda a: {"outputType": DTYPES[a.dtype]}),
    "ARG_MIN": ("ArgMinOptions", lambda a: {"outputType": DTYPES[a.dtype]}),
    "CONCATENATION": ("ConcatenationOptions", _same(axis="axis")),
    "SPLIT": ("SplitOptions", _same(numSplits="num")),
    "SPLIT_V": ("SplitVOptions", _same(numSplits="num")),
    "PACK": ("PackOptions", _same(axis="axis")),
    "UNPACK": ("UnpackOptions", _same(num="num", axis="axis")),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        _same(
            beginMask="begin_mask",
            endMask="end_mask",
            ellipsisMask="ellipsis_mask",
            newAxisMask="new_axis_mask",
            shrinkAxisMask="shrink_axis_mask",
        ),
    ),
    "MIRROR_PAD": ("MirrorPadOptions", lambda a: {"mode": getattr(tfl.MirrorPadMode, a.mode)}),
    "GATHER": ("GatherOptions", _same(axis="axis", batchDims="batch_dims")),
    "SQUEEZE": ("SqueezeOptions", lambda a: {"squeezeDims": list(a.axes)}),
    "SHAPE": ("ShapeOptions", lambda a: {"outType": DTYPES[a.dtype]}),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", _same(blockSize="block_size")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", _same(blockSize="block_size")),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _resize),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _resize),
    "ONE_HOT": ("OneHotOptions", _same(axis="axis")),
    "CAST": ("CastOptions", lambda a: {"outDataType": DTYPES[a.dtype]}),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        _same(radius="radius", bias="bias", alpha="alpha", beta="beta"),
    ),
    "CUMSUM": ("CumsumOptions", _same(exclusive="exclusive", reverse="reverse")),
}


def options_of(op: str, attributes: Any, shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, Any]:
    """(type, table) of an operator's options. Raises ValueError for what TFLite cannot say (CLAMP, EXPLICIT)."""
    if op not in OPTIONS:
        return tfl.BuiltinOptions.NONE, None
    name, fields = OPTIONS[op]
    table = getattr(tfl, f"{name}T")()
    try:
        values = fields(attributes)
    except AttributeError as error:
        raise ValueError(f"TFLite has no such {op}: {attributes}") from error
    for field, value in values.items():
        if not hasattr(table, field):
            raise ValueError(f"{name} has no {field}")
        setattr(table, field, value)
    if op == "DEPTHWISE_CONV_2D" and shapes[0] is not None and shapes[1] is not None:
        table.depthMultiplier = shapes[1][3] // shapes[0][3]
    if op == "PACK":
        table.valuesCount = len(shapes)
    return getattr(tfl.BuiltinOptions, name), table
