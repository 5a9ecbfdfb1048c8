"""Random graphs of what front ends emit, in which rewrites meet each other in every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schema import evaluate
from schema.graph import Graph, Tensor
from schema.inference import annotate
from tests.converter.passes.building import Building, compare, draw

Grow = Callable[[Building, Tensor], "Tensor | None"]


def _constant(b: Building, x: Tensor) -> Tensor:
    """A constant that broadcasts: a number, one per channel, or one per position of a trailing axis."""
    tail = tuple(d for d in x.shape[1:])
    kind = b.rng.integers(4)
    if kind == 0 or None in tail:
        return b.constant(b.rng.choice([0.0, 1.0, 2.0, -0.5, 3.0, 6.0, 1 / 6]))
    if kind == 3:
        shape = list(tail)
        shape[-1] = 1
        return b.positive(*shape)
    return b.positive(x.shape[-1])


def _binary(op: str) -> Grow:
    def grow(b: Building, x: Tensor) -> Tensor:
        operands = [x, _constant(b, x)]
        return b(op, *(operands[::-1] if b.rng.random() < 0.3 and op != "DIV" else operands))

    return grow


def _unary(op: str, **attributes: float) -> Grow:
    return lambda b, x: b(op, x, **attributes)


def _bounded(op: str, bound: float) -> Grow:
    return lambda b, x: b(op, x, b.constant(bound))


def _conv(b: Building, x: Tensor) -> Tensor | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 3:
        return None
    padding = str(b.rng.choice(["SAME", "VALID"]))
    channels = int(b.rng.choice([2, 4]))
    weights = b.normal(channels, 3, 3, x.shape[3])
    weights.set_constant(type(weights.constant)(weights.value * np.float32(0.3)))
    rest = [b.normal(channels)] if b.rng.random() < 0.5 else []
    return b("CONV_2D", x, weights, *rest, padding=padding, stride_h=int(b.rng.integers(1, 3)))


def _depthwise(b: Building, x: Tensor) -> Tensor | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
        return None
    return b("DEPTHWISE_CONV_2D", x, b.positive(1, 2, 2, x.shape[3] * int(b.rng.integers(1, 3))), padding="SAME")


def _dense(b: Building, x: Tensor) -> Tensor | None:
    units = int(b.rng.choice([2, 4]))
    if b.rng.random() < 0.3:
        return b("BATCH_MATMUL", x, b.normal(x.shape[-1], units)) if len(x.shape) > 1 else None
    return b("FULLY_CONNECTED", x, b.normal(units, x.shape[-1]))


def _pad(b: Building, x: Tensor) -> Tensor:
    amounts = [[0, 0], *b.rng.integers(0, 2, (len(x.shape) - 1, 2)).tolist()]
    return b("PAD", x, b.constant(amounts, np.int32))


def _pool(b: Building, x: Tensor) -> Tensor | None:
    if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
        return None
    op = str(b.rng.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
    return b(op, x, filter_h=2, filter_w=2, stride_w=int(b.rng.integers(1, 3)))


def _transpose(b: Building, x: Tensor) -> Tensor:
    rest = 1 + b.rng.permutation(len(x.shape) - 1)
    return b("TRANSPOSE", x, b.integers(0, *rest))


def _reshape(b: Building, x: Tensor) -> Tensor:
    size = int(np.prod(x.shape[1:]))
    choices = [(size,), (1, size), *((size // n, n) for n in (2, 3, 4) if size % n == 0)]
    choices += [(*x.shape[1:-1], x.shape[-1] // 2, 2)] if x.shape[-1] % 2 == 0 and len(x.shape) < 5 else []
    shape = choices[b.rng.integers(len(choices))]
    if b.rng.random() < 0.5:
        return b("RESHAPE", x, b.integers(-1, *shape))
    return b("RESHAPE", x, b("PACK", b.batch_of(x), *(b.index(n) for n in shape), axis=0))


def _expand(b: Building, x: Tensor) -> Tensor | None:
    return b("EXPAND_DIMS", x, b.index(int(b.rng.integers(1, len(x.shape) + 1)))) if len(x.shape) < 5 else None


def _squeeze(b: Building, x: Tensor) -> Tensor | None:
    axes = [axis for axis, d in enumerate(x.shape) if d == 1 and len(x.shape) > 2]
    return b("SQUEEZE", x, axes=(int(b.rng.choice(axes)),)) if axes else None


def _mean(b: Building, x: Tensor) -> Tensor | None:
    if len(x.shape) < 3:
        return None
    return b("MEAN", x, b.integers(int(b.rng.integers(1, len(x.shape)))), keep_dims=bool(b.rng.integers(2)))


def _itself(b: Building, x: Tensor) -> Tensor:
    """x with what is made of it, as residuals and gates do."""
    op = str(b.rng.choice(["ADD", "MUL", "SUB"]))
    return b(op, x, b(str(b.rng.choice(["RELU", "LOGISTIC", "TANH"])), x))


GROWING: list[Grow] = [
    *(_binary(op) for op in ("ADD", "SUB", "MUL", "DIV", "ADD", "MUL")),
    *(_unary(op) for op in ("RELU", "RELU6", "NEG", "TANH", "LOGISTIC", "SQUARE")),
    _unary("CLAMP", min=-0.5, max=2.0),
    _bounded("MINIMUM", 1.0),
    _bounded("MAXIMUM", 0.0),
    *(_conv, _conv, _depthwise, _dense, _pad, _pool, _transpose, _transpose),
    *(_reshape, _reshape, _expand, _squeeze, _squeeze, _mean, _itself),
]


def random_graph(seed: int, steps: int) -> Graph:
    """A chain with branches off it, of several outputs, on inputs of rank 4 whose batch is unknown."""
    b = Building(seed)
    tensors = [b.x(None, 6, 5, 4)]
    for _ in range(steps):
        recent = tensors[-1] if b.rng.random() < 0.8 else tensors[b.rng.integers(len(tensors))]
        grown = GROWING[b.rng.integers(len(GROWING))](b, recent)
        if grown is not None and all(d for d in grown.shape[1:]):
            tensors.append(grown)
    outputs = {tensors[-1]: None}
    if len(tensors) > 2 and b.rng.random() < 0.5:
        outputs[tensors[int(b.rng.integers(1, len(tensors)))]] = None
    if tensors[0] in outputs:
        outputs = {b("NEG", tensors[0]): None}
    return b.end(*outputs)


def assert_computes_the_same(graph: Graph, rng: np.random.Generator, rewrite: Callable[[Graph], Any]) -> None:
    """Rewritten, the graph computes what it did before, of one sample and of three."""
    annotate(graph)
    cases = [draw(graph, rng, batch) for batch in (1, 3)]
    with np.errstate(all="ignore"):
        before = [evaluate.run(graph, arrays) for arrays in cases]
        if any(not np.abs(array).max(initial=0) < 1e4 for arrays in before for array in arrays):
            return  # numbers that outgrow float32 say nothing of the rewrites
        rewrite(graph)
        annotate(graph)
        for arrays, expected in zip(cases, before, strict=True):
            compare(evaluate.run(graph, arrays), expected, 2e-5)
