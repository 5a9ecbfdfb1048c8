import numpy as np
import pytest

from converter.passes import clean_reshapes, manager
from tests.converter.passes.building import Building, names, rewritten


def squeeze(b: Building, x, axis=1):
    return b("SQUEEZE", x, axes=(axis,), layer="squeeze")


def expand(b: Building, x, axis=1):
    return b("EXPAND_DIMS", x, b.index(axis), layer="expand")


def conv(b: Building, x, channels=4):
    return b("CONV_2D", x, b.normal(channels, 1, 3, x.shape[-1]), padding="SAME", layer="conv")


def repeated(graph):
    """The pass until it finds nothing, as the manager runs it."""
    lines = []
    while found := rewritten(graph, clean_reshapes.run):
        lines += found
    return lines


@pytest.mark.parametrize("length", [7, None])
def test_a_squeeze_and_an_expansion_cancel(length):
    b = Building()
    y = squeeze(b, conv(b, expand(b, b.x(None, length, 3))))
    graph = b.end(b("NEG", conv(b, expand(b, y))))
    assert rewritten(graph, clean_reshapes.run) == ["squeeze and expand: SQUEEZE and EXPAND_DIMS cancel"]
    assert names(graph) == ["EXPAND_DIMS", "CONV_2D", "CONV_2D", "NEG"]


@pytest.mark.parametrize("length", [7, None])
def test_with_batch_norm_and_activation_in_between(length):
    b = Building()
    y = squeeze(b, conv(b, expand(b, b.x(None, length, 3))))
    y = b("TANH", b("ADD", b("MUL", y, b.normal(4)), b.normal(1, 4)))
    graph = b.end(squeeze(b, conv(b, expand(b, y))))
    repeated(graph)
    assert names(graph) == ["EXPAND_DIMS", "CONV_2D", "MUL", "ADD", "TANH", "CONV_2D", "SQUEEZE"]


@pytest.mark.parametrize("length", [7, None])
def test_a_residual_block_of_one_dimension(length):
    b = Building()
    x = b.x(None, length, 4)
    y = squeeze(b, conv(b, expand(b, x)))
    y = b("RELU", b("ADD", x, y))
    z = squeeze(b, conv(b, expand(b, y)))
    graph = b.end(b("ADD", z, y))
    rewritten(graph, lambda g: [str(manager.optimize(g))], tolerance=5e-6)
    assert names(graph) == ["EXPAND_DIMS", "CONV_2D", "ADD", "CONV_2D", "ADD", "SQUEEZE"]


def test_two_reshapes_become_one():
    b = Building()
    x = b("RESHAPE", b.x(None, 4, 6), b.integers(-1, 24))
    graph = b.end(b("RESHAPE", x, b.integers(-1, 3, 8)))
    assert len(rewritten(graph, clean_reshapes.run)) == 1
    assert names(graph) == ["RESHAPE"]
    assert graph.nodes[0].inputs[1].value.tolist() == [-1, 3, 8]


def test_a_reshape_to_a_computed_shape_that_only_adds_an_axis():
    b = Building()
    x = b.x(None, None, 4)
    shape = b("SHAPE", x, dtype=np.dtype(np.int32))
    lead = b("STRIDED_SLICE", shape, b.integers(0), b.integers(2), b.integers(1))
    added = b("RESHAPE", x, b("CONCATENATION", lead, b.integers(1, 4), axis=0))
    removed = b("RESHAPE", b("NEG", added), shape)
    graph = b.end(added, removed)
    rewritten(graph, clean_reshapes.run)
    assert names(graph) == ["EXPAND_DIMS", "NEG", "SQUEEZE"]


@pytest.mark.parametrize("op", ["ADD", "MUL", "SUB", "MAXIMUM", "PRELU"])
@pytest.mark.parametrize("shape", [(2, 4), (1, 1, 2, 4), ()])
def test_a_bias_of_attention_heads_goes_before_the_split(op, shape):
    b = Building()
    y = b("FULLY_CONNECTED", b.x(None, 5, 6), b.normal(8, 6))
    heads = b("RESHAPE", y, b.integers(-1, 5, 2, 4))
    graph = b.end(b(op, heads, b.normal(*shape)))
    rewritten(graph, clean_reshapes.run)
    assert names(graph) == ["FULLY_CONNECTED", op, "RESHAPE"]


def test_a_constant_that_is_the_first_operand():
    b = Building()
    y = squeeze(b, conv(b, b.x(None, 1, 7, 3)))
    graph = b.end(b("SUB", b.normal(4), y))
    rewritten(graph, clean_reshapes.run)
    assert names(graph) == ["CONV_2D", "SUB", "SQUEEZE"]


@pytest.mark.parametrize("steps", [5, None])
def test_dense_on_rank_3(steps):
    b = Building()
    x = b.x(None, steps, 6)
    y = b("FULLY_CONNECTED", b("RESHAPE", x, b.integers(-1, 6)), b.normal(4, 6), layer="dense")
    lead = b("STRIDED_SLICE", b("SHAPE", x, dtype=np.dtype(np.int32)), b.integers(0), b.integers(2), b.integers(1))
    y = b("RESHAPE", y, b("CONCATENATION", lead, b.integers(4), axis=0))
    graph = b.end(b("ADD", y, b.normal(4)))
    rewritten(graph, lambda g: [str(manager.optimize(g))])
    assert names(graph) == ["FULLY_CONNECTED"]


def test_near_misses():
    b = Building()
    x = b.x(None, 4, 6)
    flat = b("RESHAPE", x, b.integers(-1, 24))
    shared = b("RESHAPE", x, b.integers(-1, 24))
    graph = b.end(
        b("ADD", b("RESHAPE", x, b.integers(-1, 3, 8)), b.normal(3, 1)),  # no constant of the shape before
        b("ADD", b("RESHAPE", x, b.integers(-1, 12, 2)), b.normal(2)),
        b("MUL", b("RESHAPE", b.x(None, 24, 1), b.integers(-1, 4, 6)), b.normal(6)),
        b("MUL", b("RESHAPE", b.x(None, 6, 1), b.integers(-1, 6)), b.normal(6)),  # would be per channel no more
        b("FULLY_CONNECTED", flat, b.normal(5, 24)),
        b("RELU", shared),
        shared,
        b("SOFTMAX", b("RESHAPE", x, b.integers(-1, 8, 3))),
        b("ADD", b("RESHAPE", x, b.integers(-1, 24)), b("RESHAPE", b.x(None, 6, 4), b.integers(-1, 24))),
        b("SQUEEZE", b("EXPAND_DIMS", b.x(None, 1, 6), b.index(0)), axes=(2,)),
    )
    lines = rewritten(graph, clean_reshapes.run)
    assert [line for line in lines if "merged" not in line] == []


def test_an_expansion_on_another_axis_does_not_cancel():
    b = Building()
    y = squeeze(b, conv(b, b.x(None, 1, None, 3)))
    graph = b.end(b("MAX_POOL_2D", expand(b, y, axis=2), filter_h=2))
    assert rewritten(graph, clean_reshapes.run) == []
