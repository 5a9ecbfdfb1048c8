import pytest

from converter.quantize.layers import matching, wanted
from converter.quantize.options import Options
from converter.quantize.rules import INT8, INT16
from schema import InputError
from tests.support.control_flow import looping
from tests.support.float_graphs import Builder


def graph():
    builder = Builder()
    y = builder.input("x", None, 8, 8, 3)
    for name in ("stem", "block1/conv", "block1/act", "block2/conv", "Head"):
        y = builder.conv(y, 3, name=name)
    return builder.end(builder.node("RELU", y, name="Head"))


def names(nodes):
    return [node.name for node in nodes]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["stem"], ["stem"]),
        (["block1/*"], ["block1/conv", "block1/act"]),
        (["*/conv", "stem"], ["stem", "block1/conv", "block2/conv"]),
        (["block[2-9]/*"], ["block2/conv"]),
        (["Head"], ["Head", "Head"]),
        ([], []),
    ],
)
def test_patterns_name_layers(patterns, expected):
    assert names(matching(graph().nodes, patterns, "keep_float")) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("head", "int16 'head' matches no layer; close to it are Head"),
        ("block1/conf", "close to it are block1/conv, block2/conv"),
        ("BLOCK1/*", "close to it are block1/conv, block1/act"),
        ("zzz", r"there are stem, block1/conv, .*Head \(a layer that was fused has"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(pattern, message):
    with pytest.raises(InputError, match=message):
        matching(graph().nodes, ["stem", pattern], "int16")


def test_layers_in_loops_are_named_too():
    loop = looping()
    assert names(wanted(loop, Options("int8", keep_float="add")).kept) == ["add", "add"]
    assert names(wanted(loop, Options("int8", int16="add")).int16) == ["add", "add"]


def test_what_is_wanted_of_nodes():
    one = graph()
    asked = wanted(one, Options("int8", keep_float="block1/*", int16="*conv"))
    assert names(asked.kept) == ["block1/conv", "block1/act"]
    assert [asked.of(node) for node in one.nodes] == [INT8, INT16, INT8, INT16, INT8, INT8]
    assert {wanted(one, Options("int16x8")).of(node) for node in one.nodes} == {INT16}
