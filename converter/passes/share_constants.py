"""f(x, c), g(y, c') -> f(x, c), g(y, c) where the constants c and c' are equal.

A layer that is called at every time step gets its kernel once for each call. As one it is quantized once, by all that
it meets, and packed once by the engine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from converter.rewriter import layer
from schema.graph import Graph, Tensor

SMALL = 256
"""Bytes below which constants are worth nothing as one."""


def run(graph: Graph) -> list[str]:
    first: dict[Any, Tensor] = {}
    seen: dict[Tensor, Tensor] = {}
    changes = []
    for node in graph.nodes:
        for i, tensor in enumerate(node.inputs):
            if tensor is None or tensor.constant is None or tensor.quantization is not None:
                continue
            if tensor not in seen:
                seen[tensor] = first.setdefault(_key(tensor), tensor)
            if seen[tensor] is not tensor:
                node.inputs[i] = seen[tensor]
                changes.append(f"{layer(node)}: '{tensor.name}' is '{seen[tensor].name}'")
    return changes


def _key(tensor: Tensor) -> Any:
    constant = tensor.constant
    assert constant is not None
    values = np.asarray(constant.values)
    if values.nbytes < SMALL:
        return tensor
    scale = constant.channel_scale
    factors = None if scale is None else (constant.axis, scale.tobytes())
    digest = hashlib.blake2b(np.ascontiguousarray(values)).digest()
    return tensor.dtype, values.dtype, values.shape, digest, factors
