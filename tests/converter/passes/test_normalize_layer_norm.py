import pytest

from converter.passes import normalize_layer_norm
from tests.converter.passes.building import Building, names, rewritten


def statistics(b: Building, x):
    mean = b("MEAN", x, b.integers(-1), keep_dims=True)
    variance = b("MEAN", b("SQUARED_DIFFERENCE", x, mean), b.integers(-1), keep_dims=True)
    return mean, b("RSQRT", b("ADD", variance, b.constant(1e-3)))


def factor(b: Building, r, scale):
    return b("MUL", r, b.normal(6)) if scale else r


def keras_3(b: Building, x, scale, center):
    mean, r = statistics(b, x)
    m = factor(b, r, scale)
    shift = b("MUL", b("NEG", mean), m)
    if center:
        shift = b("ADD", shift, b.normal(6))
    return b("ADD", b("MUL", x, m), shift, layer="norm")


def without_beta(b: Building, x, scale, center):
    mean, r = statistics(b, x)
    m = factor(b, r, scale)
    return b("ADD", b("MUL", x, m), b("NEG", b("MUL", mean, m)), layer="norm")


def tf_keras(b: Building, x, scale, center):
    mean, r = statistics(b, x)
    m = factor(b, r, scale)
    return b("ADD", b("MUL", x, m), b("SUB", b.normal(6), b("MUL", mean, m)), layer="norm")


@pytest.mark.parametrize("spelling", [keras_3, tf_keras, without_beta])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_the_mean_is_subtracted_first(spelling, scale, center):
    b = Building()
    graph = b.end(spelling(b, b.x(None, 5, 6), scale, center))
    assert rewritten(graph, normalize_layer_norm.run) == ["norm: mean subtracted before scaling"]
    expected = ["SUB", "MUL", *["MUL"] * scale, *["ADD"] * (spelling is tf_keras or (spelling is keras_3 and center))]
    assert names(graph)[5:] == expected


def test_near_misses():
    b = Building()
    x, y = b.x(None, 5, 6), b.x(None, 5, 6)
    mean, r = statistics(b, x)
    _, other = statistics(b, y)
    shared = b("MUL", x, r)
    graph = b.end(
        b("ADD", b("MUL", x, r), b("MUL", mean, r)),  # not a difference
        b("ADD", b("MUL", x, r), b("MUL", b("NEG", mean), other)),  # another factor
        b("ADD", b("MUL", x, r), b("SUB", y, b("MUL", mean, r))),  # beta is computed
        b("ADD", shared, b("MUL", b("NEG", mean), r)),
        shared,
        b("ADD", b("MUL", x, r), b("MUL", b("NEG", mean), r), activation="RELU"),
    )
    assert rewritten(graph, normalize_layer_norm.run) == []
