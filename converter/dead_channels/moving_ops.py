"""Ops through which channels pass: elements, pooling, padding, reshaping, joining."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from converter.constants import float_value, is_float, value_of
from converter.dead_channels.flow import Channels, Flow, all_of
from schema import evaluate
from schema.graph import Node, Tensor
from schema.ops.attributes import activation_range

UNARY = frozenset(
    """ABS NEG EXP SQRT SQUARE RELU RELU6 RELU_N1_TO_1 CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH
    SOFTPLUS SOFTSIGN""".split()
)
BINARY = frozenset("ADD SUB MUL DIV MAXIMUM MINIMUM PRELU SQUARED_DIFFERENCE".split())


def unary(flow: Flow, node: Node) -> bool:
    """Each element by itself."""
    x = flow.of(node.inputs[0])
    if x is None or not is_float(node.outputs[0]):
        return False
    flow.set(node.outputs[0], x.axis, x.ids, _evaluated(node, [x.values]))
    return True


def binary(flow: Flow, node: Node) -> bool:
    """Two tensors of the same channels, or one and a constant of one number, or of one for each channel."""
    a, b = node.inputs
    y = node.outputs[0]
    if a is None or b is None or not is_float(y) or y.shape is None:
        return False
    if a.is_constant or b.is_constant:
        return _with_constant(flow, node)
    both = all_of(flow, (a, b))
    if both is None or len(a.shape) != len(b.shape) or both[0].axis != both[1].axis:
        return False
    if len(both[0].ids) != len(both[1].ids):
        return False
    flow.unite(both[0].ids, both[1].ids)
    values = _evaluated(node, [both[0].values, both[1].values])
    if node.op == "MUL":
        zero = (both[0].values == 0) | (both[1].values == 0)
        values = np.where(zero, np.clip(0.0, *activation_range(node.attributes)), values)
    flow.set(y, both[0].axis, both[0].ids, values)
    return True


def _with_constant(flow: Flow, node: Node) -> bool:
    index = 0 if node.inputs[0].is_constant else 1
    constant, x = node.inputs[index], flow.of(node.inputs[1 - index])
    value = float_value(constant)
    if x is None or value is None or node.outputs[0].shape != node.inputs[1 - index].shape:
        return False
    rank = len(node.outputs[0].shape)
    axis = x.axis - (rank - value.ndim)  # in the constant, which may have fewer axes
    per_channel = axis >= 0 and value.shape[axis] == len(x.ids) > 1
    if axis >= 0 and value.shape[axis] not in (1, len(x.ids)):
        return False
    if per_channel:
        flow.tie(constant, axis, x.ids)
        rows = np.moveaxis(value, axis, -1).reshape(-1, len(x.ids))
    else:
        rows = np.broadcast_to(value.reshape(-1, 1), (value.size, len(x.ids)))
    operands = [np.tile(x.values, len(rows))] * 2
    operands[index] = rows.astype(np.float64).ravel()
    results = _evaluated(node, operands).reshape(rows.shape)
    values = np.where((results == results[0]).all(axis=0), results[0], np.nan)
    if node.op == "MUL":  # whatever comes, zero makes it zero
        values = np.where((rows == 0).all(axis=0), np.clip(0.0, *activation_range(node.attributes)), values)
    flow.set(node.outputs[0], x.axis, x.ids, values)
    return True


def _evaluated(node: Node, operands: list[np.ndarray]) -> np.ndarray:
    """The op by its reference on constants (channels,), NaN where one of them is."""
    known = np.all([np.isfinite(values) for values in operands], axis=0)
    out = np.full(len(known), np.nan)
    if known.any():
        tensors = [Tensor("constant", np.dtype(np.float32), (int(known.sum()),)) for _ in operands]
        single = Node(node.op, list(tensors), [Tensor("y", np.dtype(np.float32))], node.attributes, node.name)
        out[known] = evaluate.run_node(single, [values[known].astype(np.float32) for values in operands])[0]
    return out


def pooling(flow: Flow, node: Node) -> bool:
    """Within the spatial axes; what is padded takes no part."""
    x = flow.of(node.inputs[0])
    if x is None or x.axis != len(node.inputs[0].shape) - 1 or not is_float(node.outputs[0]):
        return False
    low, high = activation_range(node.attributes)
    flow.set(node.outputs[0], x.axis, x.ids, np.clip(x.values, low, high))
    return True


def resizing(flow: Flow, node: Node) -> bool:
    x = flow.of(node.inputs[0])
    if x is None or x.axis != len(node.inputs[0].shape) - 1 or not is_float(node.outputs[0]):
        return False
    flow.set(node.outputs[0], x.axis, x.ids, x.values)
    return True


def reduction(flow: Flow, node: Node) -> bool:
    """MEAN, REDUCE_MAX, REDUCE_MIN over other axes than that of the channels."""
    x, axes = flow.of(node.inputs[0]), value_of(node.inputs[1])
    if x is None or axes is None or not is_float(node.outputs[0]):
        return False
    rank = len(node.inputs[0].shape)
    over = {int(axis) % rank for axis in axes.reshape(-1)}
    if x.axis in over:
        return False
    axis = x.axis if node.attributes.keep_dims else x.axis - sum(other < x.axis for other in over)
    flow.set(node.outputs[0], axis, x.ids, x.values)
    return True


def padding(flow: Flow, node: Node) -> bool:
    """Zeros around other axes."""
    x, amounts = flow.of(node.inputs[0]), value_of(node.inputs[1])
    if x is None or amounts is None or amounts[x.axis].any() or not is_float(node.outputs[0]):
        return False
    flow.set(node.outputs[0], x.axis, x.ids, np.where(x.values == 0, 0.0, np.nan))
    return True


def concatenation(flow: Flow, node: Node) -> bool:
    parts = all_of(flow, node.inputs)
    if parts is None or len({part.axis for part in parts}) != 1 or not is_float(node.outputs[0]):
        return False
    axis = node.attributes.axis % len(node.outputs[0].shape)
    if parts[0].axis == axis:
        ids, values = np.concatenate([p.ids for p in parts]), np.concatenate([p.values for p in parts])
    else:
        for part in parts[1:]:
            flow.unite(parts[0].ids, part.ids)
        stacked = np.stack([part.values for part in parts])
        ids, values = parts[0].ids, np.where((stacked == stacked[0]).all(axis=0), stacked[0], np.nan)
    low, high = activation_range(node.attributes) if hasattr(node.attributes, "activation") else (-np.inf, np.inf)
    flow.set(node.outputs[0], parts[0].axis, ids, np.clip(values, low, high))
    return True


def transpose(flow: Flow, node: Node) -> bool:
    x, order = flow.of(node.inputs[0]), value_of(node.inputs[1])
    if x is None or order is None:
        return False
    flow.set(node.outputs[0], [int(axis) for axis in order].index(x.axis), x.ids, x.values)
    return True


def strided_slice(flow: Flow, node: Node) -> bool:
    """Along other axes, all of which stay, as cropping does it."""
    x, strides, a = flow.of(node.inputs[0]), value_of(node.inputs[3]), node.attributes
    source, target = node.inputs[0], node.outputs[0]
    if x is None or strides is None or target.shape is None or not is_float(target):
        return False
    if a.ellipsis_mask or a.new_axis_mask or a.shrink_axis_mask or target.shape[x.axis] != source.shape[x.axis]:
        return False
    if x.axis < strides.size and int(strides.ravel()[x.axis]) != 1:
        return False  # backwards
    flow.set(target, x.axis, x.ids, x.values)
    return True


def tile(flow: Flow, node: Node) -> bool:
    """Along other axes."""
    x, multiples = flow.of(node.inputs[0]), value_of(node.inputs[1])
    if x is None or multiples is None or int(multiples.ravel()[x.axis]) != 1 or not is_float(node.outputs[0]):
        return False
    flow.set(node.outputs[0], x.axis, x.ids, x.values)
    return True


def reshaping(flow: Flow, node: Node) -> bool:
    """RESHAPE, EXPAND_DIMS, SQUEEZE of a tensor of known size but for the batch, which stays the first axis; or of any
    tensor whose channels are last and stay there, with other axes joined to the batch (TimeDistributed).

    Results have channels along the last axis along which they differ; what differs along others too becomes one.
    """
    source, target = node.inputs[0], node.outputs[0]
    x = flow.of(source)
    if x is None or x.axis == 0 or target.shape is None or len(target.shape) < 2:
        return False
    if node.op == "RESHAPE" and value_of(node.inputs[1]) is None:
        return False
    if source.shape[0] != target.shape[0] or _size(source) != _size(target):
        return _joined(flow, node, x)
    if _size(source) is None:
        return False
    ids = _spread(x.ids, x, source).reshape(target.shape[1:])
    values = _spread(x.values, x, source).reshape(target.shape[1:])
    axis = _last_varying(ids)
    for other in reversed(range(ids.ndim)):
        if other != axis:
            for index in range(1, ids.shape[other]):
                flow.unite(ids.take(0, other).ravel(), ids.take(index, other).ravel())
            ids = ids.take([0], other)
    rows = np.moveaxis(values, axis, -1).reshape(-1, ids.size)
    same = (rows == rows[0]).all(axis=0)
    flow.set(target, axis + 1, ids.ravel(), np.where(same, rows[0], np.nan))
    if node.op == "RESHAPE":
        flow.shapes.append((node, 1, axis + 1, ids.ravel()))
    return True


def _size(tensor: Tensor) -> int | None:
    """Elements of one sample, if it is known."""
    sizes = tensor.shape[1:]
    return None if None in sizes else math.prod(sizes)


def _joined(flow: Flow, node: Node, x: Channels) -> bool:
    """Other axes become another number of samples."""
    last, shape = len(node.outputs[0].shape) - 1, node.outputs[0].shape
    if node.op != "RESHAPE" or x.axis != len(node.inputs[0].shape) - 1 or shape[last] != len(x.ids):
        return False
    if shape.count(None) > 1:
        return False
    flow.set(node.outputs[0], last, x.ids, x.values)
    flow.shapes.append((node, 1, last, x.ids))
    return True


def _spread(numbers: np.ndarray, x: Channels, tensor: Tensor) -> np.ndarray:
    """A channel's number at each element of a tensor, the batch left out."""
    shape = [1] * (len(tensor.shape) - 1)
    shape[x.axis - 1] = -1
    return np.broadcast_to(numbers.reshape(shape), tensor.shape[1:])


def _last_varying(ids: np.ndarray) -> int:
    for axis in reversed(range(ids.ndim)):
        if ids.shape[axis] > 1 and (ids != ids.take([0], axis)).any():
            return axis
    return ids.ndim - 1


OPS: dict[str, Callable[[Flow, Node], bool]] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys("MAX_POOL_2D AVERAGE_POOL_2D MAX_POOL_3D AVERAGE_POOL_3D".split(), pooling),
    **dict.fromkeys("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR".split(), resizing),
    **dict.fromkeys("MEAN REDUCE_MAX REDUCE_MIN".split(), reduction),
    "PAD": padding,
    "CONCATENATION": concatenation,
    "TRANSPOSE": transpose,
    "STRIDED_SLICE": strided_slice,
    "TILE": tile,
    **dict.fromkeys("RESHAPE EXPAND_DIMS SQUEEZE".split(), reshaping),
}
