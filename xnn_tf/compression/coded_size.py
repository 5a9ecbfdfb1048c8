"""How many bytes weights take in an `.xnn` file, found by coding them: the rate that every step is judged by."""

import hashlib
from collections import OrderedDict

import numpy as np

import runtime  # noqa: F401 (its decoder of streams is registered)
from schema.coding import constant as constant_coding
from schema.graph import Constant
from xnn_tf.clustering import codebook, nearest
from xnn_tf.kernels import Kernel

_KEPT = 4096  # sizes remembered: of each kernel, those at many settings
_known: OrderedDict[tuple[bytes, tuple[int, ...]], int] = OrderedDict()


def coded_bytes_of(weight: np.ndarray) -> int:
    """Bytes of one weight as the converter's encoder stores it, the streams' metadata included.

    Cached by content: coding a layer of 400,000 weights takes some 0.1 s, finding it again under 1 ms.
    """
    weight = np.ascontiguousarray(weight, np.float32)
    key = (hashlib.blake2b(weight.tobytes(), digest_size=16).digest(), weight.shape)
    if key in _known:
        _known.move_to_end(key)
        return _known[key]
    size = constant_coding.size(constant_coding.encode(Constant(weight), np.dtype(np.float32)))
    _known[key] = size
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    return size


def values(kernel: Kernel) -> np.ndarray:
    """A kernel's float32 values, outputs last as in the file: a copy."""
    return np.array(kernel.variable.numpy(), np.float32)


def quantized(weight: np.ndarray, levels: int) -> np.ndarray:
    """The weight with so many values at most, zero among them: what clustering would make of it.

    Args:
        weight: of any shape.
        levels: from 2 on, zero included.
    """
    values = codebook(weight, levels - 1, init="linear")
    if values.size == 0:
        return weight
    # What is not zero stays so: zeros are the pruning step's business.
    return np.where(weight == 0, weight, values[nearest(weight, values)])
