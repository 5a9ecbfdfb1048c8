import numpy as np
import pytest

from converter.passes import fold_input_scale
from schema.graph import Constant, Tensor
from tests.converter.passes.building import Building, names, rewritten, stored


def scaled(b: Building, x, shape=None, layer="scale"):
    shape = (x.shape[-1],) if shape is None else shape
    return b("ADD", b("MUL", x, b.positive(*shape), layer=layer), b.normal(*shape), layer=layer)


LINEAR = {
    "CONV_2D": lambda b, x, **a: b("CONV_2D", x, b.normal(6, 3, 3, 4), b.normal(6), layer="conv", **a),
    "CONV_2D, groups": lambda b, x, **a: b("CONV_2D", x, b.normal(6, 3, 3, 2), layer="conv", **a),
    "DEPTHWISE_CONV_2D": lambda b, x, **a: b("DEPTHWISE_CONV_2D", x, b.normal(1, 3, 3, 8), layer="conv", **a),
}


@pytest.mark.parametrize("case", LINEAR)
@pytest.mark.parametrize("shape", [(), (4,), (1, 1, 4)])
def test_without_padding_everything_folds(case, shape):
    b = Building()
    graph = b.end(LINEAR[case](b, scaled(b, b.x(None, 6, 6, 4), shape)))
    assert rewritten(graph, fold_input_scale.run, tolerance=5e-6) == ["scale before conv folded into it"]
    assert len(graph.nodes) == 1


@pytest.mark.parametrize("case", LINEAR)
@pytest.mark.parametrize("padding", [{"padding": "SAME"}, {"padding": "EXPLICIT", "pads": (1, 0, 0, 1)}])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_with_padding_the_addend_stays(case, padding, shape):
    b = Building()
    graph = b.end(LINEAR[case](b, scaled(b, b.x(None, 6, 6, 4), shape), **padding))
    rewritten(graph, fold_input_scale.run, tolerance=5e-6)
    assert names(graph) == ["ADD", case.split(",")[0]]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_factor_alone_folds_whatever_the_padding(padding):
    b = Building()
    x = b("MUL", b.x(None, 6, 6, 4), b.normal(4))
    graph = b.end(LINEAR["CONV_2D"](b, x, padding=padding))
    rewritten(graph, fold_input_scale.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]


def test_dense_and_a_normalization_spelled_the_other_way_round():
    b = Building()
    x = b("MUL", b("ADD", b.x(None, 5, 4), b.normal(4), layer="norm"), b.positive(4), layer="norm")
    graph = b.end(b("FULLY_CONNECTED", x, b.normal(3, 4), layer="dense"))
    assert rewritten(graph, fold_input_scale.run, tolerance=5e-6) == ["norm before dense folded into it"]
    assert names(graph) == ["FULLY_CONNECTED"]


def test_three_dimensions():
    b = Building()
    graph = b.end(b("CONV_3D", scaled(b, b.x(None, 4, 4, 4, 3)), b.normal(2, 2, 2, 3, 4)))
    rewritten(graph, fold_input_scale.run, tolerance=5e-6)
    assert names(graph) == ["CONV_3D"]


def test_a_transposed_convolution_takes_the_factor():
    b = Building()
    x = b.x(2, 4, 4, 3)
    y = scaled(b, x)
    graph = b.end(b("TRANSPOSE_CONV", b.integers(2, 5, 5, 4), b.normal(4, 2, 2, 3), y))
    rewritten(graph, fold_input_scale.run, tolerance=5e-6)
    assert names(graph) == ["ADD", "TRANSPOSE_CONV"]


def test_a_codebook_is_kept():
    b = Building()
    values = b.rng.choice(np.float32([-1, 0, 2]), (6, 3, 3, 4))

    def conv(x):
        return b("CONV_2D", x, Tensor("kernel", np.float32, values.shape, constant=Constant(values)))

    by_channel = conv(b("MUL", b.x(None, 6, 6, 4), b.normal(4)))
    by_number = conv(b("MUL", b.x(None, 6, 6, 4), b.constant(0.25)))
    graph = b.end(by_channel, by_number)
    assert len(rewritten(graph, fold_input_scale.run)) == 1
    assert names(graph) == ["MUL", "CONV_2D", "CONV_2D"]
    assert all(np.array_equal(stored(n.inputs[1]).values, values) for n in graph.nodes if n.op == "CONV_2D")


def test_near_misses():
    b = Building()
    x = scaled(b, b.x(None, 6, 6, 4))
    shared = b("MUL", b.x(None, 6, 6, 4), b.normal(4))
    graph = b.end(
        LINEAR["CONV_2D"](b, b("ADD", b.x(None, 6, 6, 4), b.normal(4)), padding="SAME"),  # an addend alone
        LINEAR["CONV_2D"](b, b("ADD", b.x(None, 6, 6, 4), b.constant(1e4))),  # would be lost in rounding
        LINEAR["CONV_2D"](b, b("MUL", b.x(None, 6, 6, 4), b.normal(6, 1, 1))),  # another axis
        LINEAR["CONV_2D"](b, b("MUL", b.x(None, 6, 6, 4), b.normal(4), activation="RELU")),
        LINEAR["CONV_2D"](b, shared),
        shared,
        b("NEG", x),
    )
    assert rewritten(graph, fold_input_scale.run) == []
