import numpy as np
import pytest

from converter.passes import masked_softmax, softmax
from schema import evaluate
from tests.converter.passes.building import Building, names, rewritten

LINE = "attention: SOFTMAX behind a mask"


def run(graph):
    return rewritten(graph, masked_softmax.run)


def drawn(b: Building, *shape):
    """A mask that lets something in and keeps something out."""
    return b("GREATER", b.x(*shape), b.constant(-0.5))


def end(b: Building, masked, **attributes):
    return b.end(b("SOFTMAX", masked, layer="attention", **attributes))


def added(b: Building, mask, huge=-1e9, dtype=np.float32):
    """(1 - mask) * -1e9."""
    return b("MUL", b("SUB", b.constant(1), b("CAST", mask, dtype=np.dtype(dtype))), b.constant(huge))


def test_in_the_place_of_scores():
    for flipped, huge in ((False, -1e9), (True, -1e9), (False, -2.4e38)):
        b = Building()
        x, mask = b.x(None, 3, 4, 5), drawn(b, None, 1, 1, 5)
        if flipped:
            graph = end(b, b("SELECT_V2", b("LOGICAL_NOT", mask), b.constant(huge), x))
        else:
            graph = end(b, b("SELECT_V2", mask, x, b.constant(huge)))
        assert run(graph) == [LINE]
        assert names(graph) == ["GREATER", "SOFTMAX"]


@pytest.mark.parametrize("order", [1, -1])
def test_added_to_scores(order):
    b = Building()
    x, mask = b.x(None, 3, 4, 5), drawn(b, None, 5)
    addend = b("EXPAND_DIMS", b("EXPAND_DIMS", added(b, mask), b.index(1)), b.index(1))
    graph = end(b, b("ADD", *(x, addend)[::order]))
    assert run(graph) == [LINE]
    assert names(graph) == ["GREATER", "EXPAND_DIMS", "EXPAND_DIMS", "SOFTMAX"]


def test_taken_from_scores():
    b = Building()
    x, mask = b.x(None, 4, 5), drawn(b, None, 1, 5)
    huge = b("MUL", b("CAST", b("LOGICAL_NOT", mask), dtype=np.dtype(np.float32)), b.constant(1e9))
    graph = end(b, b("SUB", x, huge))
    assert run(graph) == [LINE]
    assert names(graph) == ["GREATER", "SOFTMAX"]


def test_chosen_and_moved():
    """tf.where(mask, 0., -inf), turned and cut."""
    b = Building()
    x, mask = b.x(None, 4, 5), drawn(b, 6, 4)
    addend = b("SELECT_V2", mask, b.constant(0), b.constant(-np.inf))
    addend = b("TRANSPOSE", addend, b.integers(1, 0))
    addend = b("SLICE", addend, b.integers(0, 1), b.integers(4, 5))
    graph = end(b, b("ADD", x, b("RESHAPE", addend, b.integers(1, 4, 5))))
    masked_softmax.run(graph)
    assert names(graph) == ["GREATER", "TRANSPOSE", "SLICE", "RESHAPE", "SOFTMAX"]
    assert run(graph) == []


def test_scores_with_a_huge_number_added():
    """Keras 3's Attention: tf.where(padding, scores - 1e9, scores)."""
    b = Building()
    x, mask = b.x(None, 4, 5), drawn(b, None, 1, 5)
    padding = b("EXPAND_DIMS", b("LOGICAL_NOT", b("SQUEEZE", mask, axes=(1,))), b.index(1))
    graph = end(b, b("SELECT_V2", padding, b("ADD", b.constant(-1e9), x), x))
    assert run(graph) == [LINE]
    assert "LOGICAL_NOT" not in names(graph)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("of_padding", [False, True])
def test_integers_of_0_and_1(dtype, of_padding):
    b = Building()
    x = b.x(None, 4, 5)
    mask = b("CAST", drawn(b, None, 1, 5), dtype=np.dtype(dtype))
    mask = b("MAXIMUM", mask, b.constant(0, dtype))
    if of_padding:
        mask = b("SUB", b.constant(1, dtype), mask)
        addend = b("MUL", b("CAST", mask, dtype=np.dtype(np.float32)), b.constant(-3.4e38))
    else:
        addend = added(b, mask)
    graph = end(b, b("ADD", x, addend))
    assert run(graph) == [LINE]
    assert names(graph)[-2:] == ["GREATER", "SOFTMAX"]


@pytest.mark.parametrize("huge", [-1e4, -1e9, -np.inf])
def test_a_constant(huge):
    b = Building()
    causal = np.where(np.tril(np.ones((5, 5))) > 0, 0, huge)
    graph = end(b, b("ADD", b.x(None, 3, 5, 5), b.constant(causal)), beta=2.0)
    assert run(graph) == [LINE]
    (node,) = graph.nodes
    np.testing.assert_array_equal(node.inputs[1].value, causal == 0)


def test_nothing_let_in():
    """In the place of scores or added to them, -1e9 leaves nothing of what they tell apart."""
    nothing = np.zeros((4, 5), bool)
    nothing[1:] = True
    for build in (
        lambda b, x, mask: b("SELECT_V2", mask, x, b.constant(-1e9)),
        lambda b, x, mask: b("ADD", x, added(b, mask)),
        lambda b, x, mask: b("SELECT_V2", b("LOGICAL_NOT", mask), b("ADD", x, b.constant(-1e9)), x),
    ):
        b = Building()
        graph = end(b, build(b, b.x(None, 4, 5), b("LOGICAL_AND", drawn(b, 1, 5), b.constant(nothing, bool))))
        assert run(graph) == [LINE]
        x = b.rng.normal(size=(1, 4, 5)).astype(np.float32)
        (y,) = evaluate.run(graph, [x, np.ones((1, 5), np.float32)])
        np.testing.assert_allclose(y[0, 0], 0.2)


def test_axes_other_than_the_last():
    b = Building()
    graph = end(b, b("SELECT_V2", drawn(b, 4, 1), b.x(None, 4, 5), b.constant(-1e9)), axis=1)
    assert run(graph) == [LINE]


def test_ones_and_repetitions_go():
    """dot_product_attention of Keras 3 makes a mask as large as the scores."""
    b = Building()
    x = b("MUL", b.x(None, 3, 4, 5), b.constant(2))
    ones = b("FILL", b("SHAPE", x, dtype=np.dtype(np.int32)), b.constant(True, bool))
    mask = b("LOGICAL_AND", ones, drawn(b, None, 1, 1, 5))
    graph = end(b, b("SELECT_V2", mask, x, b.constant(-1e9)))
    assert run(graph) == [LINE]
    assert names(graph) == ["MUL", "GREATER", "SOFTMAX"]
    rewritten(graph, softmax.run)
    assert names(graph) == ["GREATER", "SOFTMAX"]
    assert len(graph.nodes[-1].inputs) == 2

    b = Building()
    causal = np.broadcast_to(np.tril(np.ones((4, 5), bool)), (2, 3, 4, 5))
    graph = end(b, b("SELECT_V2", b.constant(causal, bool), b.x(2, 3, 4, 5), b.constant(-1e9)))
    masked_softmax.run(graph)
    assert graph.nodes[-1].inputs[1].shape == (1, 1, 4, 5)


def test_a_mask_that_may_be_wider_than_scores_keeps_its_shape():
    b = Building()
    causal = np.broadcast_to(np.tril(np.ones((4, 5), bool)), (3, 4, 5))
    graph = end(b, b("SELECT_V2", b.constant(causal, bool), b.x(None, 4, 5), b.constant(-1e9)))
    masked_softmax.run(graph)
    assert graph.nodes[-1].inputs[1].shape == (3, 4, 5)
    assert evaluate.run(graph, [np.ones((1, 4, 5), np.float32)])[0].shape == (3, 4, 5)


def test_a_mask_that_lets_in_all():
    b = Building()
    graph = end(b, b("SELECT_V2", b.constant(np.ones((4, 5)), bool), b.x(None, 4, 5), b.constant(-1e9)))
    assert run(graph) == [LINE]
    assert len(graph.nodes[0].inputs) == 1


def test_zeros_behind_a_mask():
    def graph_of(mask):
        b = Building()
        x = b.x(None, 4, 5)
        given = mask(b)
        y = b("SOFTMAX", b("SELECT_V2", given, x, b.constant(-1e9)), layer="attention")
        graph = b.end(b("SELECT_V2", given, y, b.constant(0), layer="zeros"))
        lines = run(graph)
        return lines, names(graph)

    causal = np.tril(np.ones((1, 4, 5), bool))
    assert graph_of(lambda b: b.constant(causal, bool))[1] == ["SOFTMAX"]
    assert graph_of(lambda b: b.constant(causal[:, ::-1] & (np.arange(5) > 0), bool))[1] == ["SOFTMAX", "SELECT_V2"]
    assert graph_of(lambda b: drawn(b, None, 1, 5)) == ([LINE], ["GREATER", "SOFTMAX", "SELECT_V2"])


def test_the_mask_is_needed_elsewhere_too():
    b = Building()
    x, mask = b.x(None, 4, 5), drawn(b, None, 1, 5)
    addend = added(b, mask)
    graph = b.end(b("SOFTMAX", b("ADD", x, addend), layer="attention"), b("NEG", addend))
    assert run(graph) == [LINE]


def test_numbers_that_stay():
    """Biases of places, small masks, and what is not seen to be 0 or huge."""
    b = Building()
    x, mask = b.x(None, 4, 5), drawn(b, None, 1, 5)
    numbers = b.x(None, 1, 5)
    distance = b.constant(-np.abs(np.subtract.outer(np.arange(4), np.arange(5))) * 0.5)
    three = b.constant(np.array([0, -1e9, -2e9, 0, 0]))
    scores = [
        b("ADD", x, distance),
        b("ADD", x, b.normal(4, 5)),
        b("ADD", x, added(b, mask, -100)),
        b("ADD", x, added(b, mask, 1e9)),
        b("ADD", x, b("MUL", b("SUB", b.constant(1), numbers), b.constant(-1e9))),
        b("ADD", x, b("MUL", b("SUB", b.constant(2), b("CAST", mask, dtype=np.dtype(np.float32))), b.constant(-1e4))),
        b("ADD", x, three),
        b("ADD", x, b.constant([-1e9] * 5)),
        b("ADD", x, added(b, mask), activation="RELU"),
        b("SUB", added(b, mask), x),
        b("SELECT_V2", mask, x, b.constant(-50)),
        b("SELECT_V2", mask, x, b("MUL", x, b.constant(-1e9))),
        b("SELECT_V2", mask, x, b("ADD", x, b.constant(-50))),
        b("SELECT_V2", mask, x, b.constant([-1e9, 0, 0, 0, 0])),
    ]
    graph = b.end(
        *(b("SOFTMAX", each) for each in scores),
        b("SOFTMAX", b("ADD", x, added(b, mask)), beta=-1.0),
        b("SOFTMAX", b("ADD", x, added(b, mask)), beta=1e-6),
        b("LOG_SOFTMAX", b("ADD", x, added(b, mask))),
        b("SOFTMAX", b("SELECT_V2", drawn(b, 2, 1, 1, 5), x, b.constant(-1e9))),
    )
    nodes = len(graph.nodes)
    assert masked_softmax.run(graph) == []
    assert len(graph.nodes) == nodes


def test_other_passes_know_the_mask():
    from converter.passes import manager

    b = Building()
    x, mask = b("TRANSPOSE", b.x(2, 5, 4, 3), b.integers(0, 2, 1, 3)), drawn(b, 2, 1, 5, 1)
    y = b("SOFTMAX", b("SELECT_V2", mask, x, b.constant(-1e9)), axis=2)
    graph = b.end(b("TRANSPOSE", y, b.integers(0, 2, 1, 3)))
    rewritten(graph, lambda g: [str(manager.optimize(g))])
    assert names(graph).count("SOFTMAX") == 1
    assert len(next(node for node in graph.nodes if node.op == "SOFTMAX").inputs) == 2
