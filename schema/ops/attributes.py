"""Attributes of ops: frozen dataclasses, each named and laid out as its table in xnn.fbs (a test compares them).

Enums are their names ("SAME"), DTypes are numpy dtypes, vectors are tuples, indices of graphs are the graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schema.errors import ShapeError
from schema.graph import Graph

NOTHING = Graph()
"""Stands for a graph that is not given."""


@dataclass(frozen=True)
class Conv2DAttributes:
    """Strides and dilations in pixels; pads (top, bottom, left, right) with padding EXPLICIT only."""

    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: str = "VALID"
    pads: tuple[int, ...] = ()
    activation: str = "NONE"
    clamp_min: float = 0.0
    clamp_max: float = 0.0


@dataclass(frozen=True)
class Conv3DAttributes:
    """As Conv2DAttributes; pads are (front, back, top, bottom, left, right)."""

    stride_d: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation_d: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: str = "VALID"
    pads: tuple[int, ...] = ()
    activation: str = "NONE"
    clamp_min: float = 0.0
    clamp_max: float = 0.0


@dataclass(frozen=True)
class Pool2DAttributes:
    filter_h: int = 1
    filter_w: int = 1
    stride_h: int = 1
    stride_w: int = 1
    padding: str = "VALID"
    pads: tuple[int, ...] = ()
    activation: str = "NONE"
    clamp_min: float = 0.0
    clamp_max: float = 0.0


@dataclass(frozen=True)
class Pool3DAttributes:
    filter_d: int = 1
    filter_h: int = 1
    filter_w: int = 1
    stride_d: int = 1
    stride_h: int = 1
    stride_w: int = 1
    padding: str = "VALID"
    pads: tuple[int, ...] = ()


@dataclass(frozen=True)
class FullyConnectedAttributes:
    """keep_num_dims: the output keeps the input's leading axes; otherwise it is (elements / in, out)."""

    keep_num_dims: bool = True
    activation: str = "NONE"
    clamp_min: float = 0.0
    clamp_max: float = 0.0


@dataclass(frozen=True)
class BatchMatMulAttributes:
    adj_x: bool = False
    adj_y: bool = False


@dataclass(frozen=True)
class ArithmeticAttributes:
    activation: str = "NONE"
    clamp_min: float = 0.0
    clamp_max: float = 0.0


@dataclass(frozen=True)
class ClampAttributes:
    min: float = 0.0
    max: float = 0.0


@dataclass(frozen=True)
class AlphaAttributes:
    """LEAKY_RELU's slope below zero, ELU's scale below zero."""

    alpha: float = 0.0


@dataclass(frozen=True)
class GeluAttributes:
    approximate: bool = False


@dataclass(frozen=True)
class SoftmaxAttributes:
    beta: float = 1.0
    axis: int = -1


@dataclass(frozen=True)
class ReduceAttributes:
    keep_dims: bool = False


@dataclass(frozen=True)
class ArgAttributes:
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.int64))


@dataclass(frozen=True)
class CumsumAttributes:
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True)
class AxisAttributes:
    axis: int = 0


@dataclass(frozen=True)
class SplitAttributes:
    num: int = 0


@dataclass(frozen=True)
class UnpackAttributes:
    num: int = 0
    axis: int = 0


@dataclass(frozen=True)
class StridedSliceAttributes:
    """Bit i of a mask speaks of entry i of begin, end and strides (tf.strided_slice)."""

    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0


@dataclass(frozen=True)
class MirrorPadAttributes:
    mode: str = "REFLECT"


@dataclass(frozen=True)
class GatherAttributes:
    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True)
class SqueezeAttributes:
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class DTypeAttributes:
    """The output's dtype: CAST, QUANTIZE, SHAPE."""

    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float32))


@dataclass(frozen=True)
class BlockSizeAttributes:
    block_size: int = 0


@dataclass(frozen=True)
class ResizeAttributes:
    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True)
class LocalResponseNormalizationAttributes:
    """radius: channels on either side that take part."""

    radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5


@dataclass(frozen=True)
class SequenceRNNAttributes:
    """time_major: sequences are (time, batch, features), not (batch, time, features)."""

    time_major: bool = False
    activation: str = "TANH"


@dataclass(frozen=True)
class LSTMAttributes:
    """cell_clip, projection_clip: the largest magnitude of the cell's state and of what is projected; 0: any.

    activation: of the candidate state and of the cell's output; gates are logistic.
    hidden_scale, hidden_zero_point: int8 only, of what the cells let out before it is projected; gate_scales: int8 with
    layer normalization only, of the gates' sums before it (see integer_lstm.py).
    """

    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    activation: str = "TANH"
    hidden_scale: float = 0.0
    hidden_zero_point: int = 0
    gate_scales: tuple[float, ...] = ()


@dataclass(frozen=True)
class SVDFAttributes:
    """rank: how many filters make one unit."""

    rank: int = 1
    activation: str = "NONE"


@dataclass(frozen=True)
class DetectionPostprocessAttributes:
    """regular: suppress within each class by itself; otherwise by each box's best class alone."""

    max_detections: int = 0
    max_classes_per_detection: int = 1
    detections_per_class: int = 100
    num_classes: int = 0
    score_threshold: float = 0.0
    iou_threshold: float = 0.0
    y_scale: float = 1.0
    x_scale: float = 1.0
    h_scale: float = 1.0
    w_scale: float = 1.0
    regular: bool = False


@dataclass(frozen=True)
class IfAttributes:
    """Both graphs take the operands behind the condition."""

    then_branch: Graph = NOTHING
    else_branch: Graph = NOTHING


@dataclass(frozen=True)
class WhileAttributes:
    """Both graphs take all operands; the body gives as many."""

    condition: Graph = NOTHING
    body: Graph = NOTHING


def activation_range(attributes) -> tuple[float, float]:
    """(lowest, highest) real value that a fused activation lets through."""
    if attributes.activation == "CLAMP":
        return attributes.clamp_min, attributes.clamp_max
    infinity = float("inf")
    return {
        "NONE": (-infinity, infinity),
        "RELU": (0.0, infinity),
        "RELU6": (0.0, 6.0),
        "RELU_N1_TO_1": (-1.0, 1.0),
    }[attributes.activation]


def check_activation(attributes) -> None:
    """Raise ShapeError for a CLAMP that lets nothing through."""
    if attributes.activation == "CLAMP" and not attributes.clamp_min <= attributes.clamp_max:
        raise ShapeError(f"clamp from {attributes.clamp_min} to {attributes.clamp_max} lets nothing through")
