import numpy as np
import pytest

from converter.passes import fold_shape_arithmetic, recover_upsampling
from schema.inference import annotate
from tests.converter.passes.building import Building, names, rewritten


def repeat(b: Building, x, axis, times):
    """Each index of the axis several times in a row, as Keras 3 spells it."""
    rank = len(x.shape)
    inserted = b("EXPAND_DIMS", x, b.index(axis + 1))
    tiled = b("TILE", inserted, b.integers(*(times if i == axis + 1 else 1 for i in range(rank + 1))))
    shape = b("SHAPE", x, dtype=np.dtype(np.int32))
    factors = b.integers(*(times if i == axis else 1 for i in range(rank)))
    return b("RESHAPE", tiled, b("MUL", shape, factors), layer="up")


@pytest.mark.parametrize("size", [(3, 4), (None, None), (None, 4)])
@pytest.mark.parametrize("factors", [(2, 2), (3, 2)])
def test_rows_then_columns(size, factors):
    b = Building()
    x = b.x(None, *size, 3)
    graph = b.end(repeat(b, repeat(b, x, 1, factors[0]), 2, factors[1]))
    assert rewritten(graph, recover_upsampling.run) == [f"up: upsampling by {factors[0]}x{factors[1]} recovered"]
    static = None not in size
    assert names(graph) == [*([] if static else ["SHAPE", "STRIDED_SLICE", "MUL"]), "RESIZE_NEAREST_NEIGHBOR"]


def test_after_shape_arithmetic_is_folded():
    b = Building()
    graph = b.end(repeat(b, repeat(b, b.x(None, 3, 4, 3), 1, 2), 2, 2))
    annotate(graph)
    fold_shape_arithmetic.run(graph)
    rewritten(graph, recover_upsampling.run)
    assert names(graph) == ["RESIZE_NEAREST_NEIGHBOR"]


def test_near_misses():
    b = Building()
    x = b.x(None, 4, 4, 4)
    tiled = b("TILE", b("EXPAND_DIMS", x, b.index(1)), b.integers(1, 2, 1, 1, 1))  # the whole again, not row by row
    graph = b.end(
        repeat(b, x, 1, 2),
        repeat(b, repeat(b, x, 2, 2), 1, 2),
        repeat(b, repeat(b, x, 1, 2), 3, 2),
        repeat(b, b("RESHAPE", tiled, b.integers(-1, 8, 4, 4)), 2, 2),
        repeat(b, repeat(b, b.x(None, 3, 3, 2, 2), 1, 2), 2, 2),
    )
    assert rewritten(graph, recover_upsampling.run) == []
