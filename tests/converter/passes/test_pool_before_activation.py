import numpy as np
import pytest

from converter.passes import pool_before_activation
from schema import Quantization, evaluate
from schema.inference import annotate
from tests.converter.passes.building import Building, draw, names, rewritten

POOL = {"filter_h": 3, "filter_w": 2, "stride_h": 2, "stride_w": 2}


@pytest.mark.parametrize("op", [*sorted(pool_before_activation.RISING), *pool_before_activation.WITH_ALPHA])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_functions_that_never_fall(op, padding):
    b = Building()
    attributes = {"CLAMP": {"min": -0.5, "max": 2.0}, "LEAKY_RELU": {"alpha": 0.2}, "ELU": {"alpha": 0.7}}
    y = b(op, b.x(None, 7, 8, 4), layer="act", **attributes.get(op, {}))
    graph = b.end(b("MAX_POOL_2D", y, layer="pool", padding=padding, **POOL))
    assert rewritten(graph, pool_before_activation.run) == [f"pool: MAX_POOL_2D moved before act ({op})"]
    assert names(graph) == ["MAX_POOL_2D", op]
    assert [node.name for node in graph.nodes] == ["pool", "act"]


def test_the_largest_of_all():
    b = Building()
    graph = b.end(b("REDUCE_MAX", b("TANH", b.x(None, 7, 8, 4)), b.integers(1, 2), keep_dims=True))
    rewritten(graph, pool_before_activation.run)
    assert names(graph) == ["REDUCE_MAX", "TANH"]


def test_near_misses():
    b = Building()
    x = b.x(None, 8, 8, 4)
    shared = b("TANH", x)
    graph = b.end(
        b("MAX_POOL_2D", b("SWISH", x), **POOL),
        b("MAX_POOL_2D", b("LEAKY_RELU", x, alpha=-0.1), **POOL),
        b("AVERAGE_POOL_2D", b("TANH", x), **POOL),
        b("MAX_POOL_2D", b("TANH", x), activation="RELU", **POOL),
        b("MAX_POOL_2D", shared, **POOL),
        shared,
    )
    assert rewritten(graph, pool_before_activation.run) == []


def integers(op, by, **attributes):
    b = Building()
    x = b.x(None, 8, 8, 4, dtype=np.int8)
    x.quantization = Quantization(0.05, 3)
    y = b(op, x, **attributes)
    y.quantization = by
    pooled = b("MAX_POOL_2D", y, **POOL)
    pooled.quantization = by
    return b.end(pooled)


@pytest.mark.parametrize(("op", "attributes"), [("TANH", {}), ("LEAKY_RELU", {"alpha": 0.1}), ("ELU", {"alpha": 1.0})])
def test_integers_stay_what_they_are(op, attributes):
    graph = integers(op, Quantization(1 / 128, 0), **attributes)
    annotate(graph)
    arrays = [(40 * a).astype(np.int8) for a in draw(graph, np.random.default_rng(3), 2)]
    (before,) = evaluate.run(graph, arrays)
    assert len(pool_before_activation.run(graph)) == 1
    annotate(graph)
    assert names(graph) == ["MAX_POOL_2D", op]
    np.testing.assert_array_equal(evaluate.run(graph, arrays)[0], before)
    assert graph.nodes[0].outputs[0].quantization == graph.inputs[0].quantization


def test_integers_that_fall():
    assert pool_before_activation.run(integers("NEG", Quantization(0.05, 3))) == []
