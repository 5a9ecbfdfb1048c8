"""Layer names from node names."""

import pytest

from converter.frontends.tensorflow.names import LayerNames

KERAS_3 = LayerNames({"conv", "dense", "dense_1", "inner", "mha", "query", "top_5"}, numbered=True, models={"net"})
TF_KERAS = LayerNames({"conv", "dense", "dense_1", "inner", "mha", "query"}, numbered=False, models={"net"})


@pytest.mark.parametrize(
    ("node", "layer"),
    [
        ("net_1/conv_1/convolution", "conv"),
        ("net_1/conv_3/convolution", "conv"),  # the layer's second call
        ("net_1/dense_1/MatMul", "dense"),
        ("net_1/dense_1_2/Tensordot/MatMul", "dense_1"),
        ("net_1/inner_1/conv_1/BiasAdd", "inner/conv"),
        ("net_1/mha_1/query_1/einsum/Einsum", "mha/query"),
        ("net_1/mha_1/einsum_1/Einsum", "mha"),
        ("net_1/top_5_1/Relu", "top_5"),
        ("Identity", "Identity"),
    ],
)
def test_keras_3_numbers_its_scopes(node, layer):
    assert KERAS_3.layer(node) == layer


@pytest.mark.parametrize(
    ("node", "layer"),
    [
        ("net/conv/Conv2D", "conv"),
        ("net/conv/Conv2D_1", "conv"),
        ("net/dense_1/Tensordot/MatMul", "dense_1"),
        ("net/inner/conv/BiasAdd", "inner/conv"),
        ("net/mha/query/einsum/Einsum", "mha/query"),
    ],
)
def test_tf_keras_scopes_are_layers(node, layer):
    assert TF_KERAS.layer(node) == layer


def test_guessing_sees_the_number_where_variables_have_none():
    nodes = ["net_1/conv_1/convolution", "net_1/dense_1/MatMul", "net_1/dense_1_2/MatMul", "net_1/act_1/Relu"]
    names = LayerNames.guess(nodes, ["conv/kernel", "dense/kernel", "dense_1/kernel"])
    assert [names.layer(node) for node in nodes] == ["conv", "dense", "dense_1", "act"]


def test_guessing_leaves_names_alone_where_variables_have_the_same():
    nodes = ["net/conv_1/Conv2D", "net/dense_1/MatMul", "net/act_1/Relu", "net/act_1/clip_by_value/Minimum"]
    names = LayerNames.guess(nodes, ["conv_1/kernel", "dense_1/kernel"])
    assert [names.layer(node) for node in nodes] == ["conv_1", "dense_1", "act_1", "act_1"]


def test_a_scope_named_as_a_node_is_a_function():
    nodes = ["net/rs/Shape", "net/rs/Reshape/shape", "net/rs/Reshape"]
    assert {LayerNames.guess(nodes, []).layer(node) for node in nodes} == {"rs"}
