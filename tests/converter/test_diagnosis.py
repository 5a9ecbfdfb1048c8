import json

import numpy as np
import pytest

from converter import costs, diagnosis
from converter.__main__ import main
from converter.passes import manager
from schema.costs import Cost
from tests.converter.passes.building import Building


def net(b: Building):
    """BatchNorm to fold, two linear layers to merge, and two that make a bottleneck."""
    x = b.x(None, 6, 6, 8)
    y = b("CONV_2D", x, b.normal(16, 3, 3, 8), None, padding="SAME", layer="conv")
    y = b("ADD", b("MUL", y, b.positive(16), layer="bn"), b.normal(16), layer="bn")
    y = b("CONV_2D", b("RELU", y, layer="relu"), b.normal(32, 1, 1, 16), None, layer="wide")
    y = b("RELU", b("CONV_2D", y, b.normal(8, 1, 1, 32), None, layer="narrow"), layer="relu2")
    y = b("CONV_2D", y, b.constant(np.where(b.rng.random((2, 1, 1, 8)) < 0.5, 0, 3)), None, layer="squeeze")
    return b.end(b("CONV_2D", y, b.normal(8, 1, 1, 2), None, layer="expand"))


def test_costs_of_one_sample():
    b = Building()
    x = b.x(None, 6, 6, 8)
    kernel = b.normal(4, 3, 3, 8)
    y = b("CONV_2D", x, kernel, None, padding="SAME")
    flat = b("RESHAPE", y, b.integers(-1, 144))
    graph = b.end(b("ADD", flat, flat))
    found = dict(costs.node_costs(graph))
    convolution, reshape, addition = graph.nodes
    assert found[convolution] == Cost(36 * 4 * 72, 4 * 288, 4 * 36 * (8 + 4))
    assert found[reshape].traffic == 0
    assert found[addition] == Cost(traffic=2 * 4 * 144)
    assert costs.graph_cost(graph) == found[convolution] + found[reshape] + found[addition]


def test_a_constant_is_counted_once():
    b = Building()
    x, kernel = b.x(None, 16), b.normal(16, 16)
    graph = b.end(b("FULLY_CONNECTED", b("FULLY_CONNECTED", x, kernel, None), kernel, None))
    assert costs.graph_cost(graph).weight_bytes == 4 * 256


@pytest.fixture
def found():
    graph = net(Building())
    explanation = manager.optimize(graph, measure=True)
    return diagnosis.diagnose(graph, explanation)


def test_what_is_saved_adds_up(found):
    done = [finding for finding in found.findings if finding.done]
    assert {finding.rewrite for finding in done} == {"fold_batch_norm", "fuse_activation", "merge_linear"}
    assert sum((finding.saving for finding in done), Cost()) == found.before - found.after
    merged = next(finding for finding in done if finding.rewrite == "merge_linear")
    assert merged.places == ("wide and narrow: two linear layers became one",)
    assert merged.saving == Cost(36 * (16 * 32 + 32 * 8 - 16 * 8), 4 * (16 * 32 + 32 * 8 - 16 * 8), 4 * 36 * 64)


def test_what_is_not_done_says_why(found):
    (left,) = [finding for finding in found.findings if not finding.done]
    assert (left.rewrite, left.places) == ("merge_linear", ("squeeze and expand",))
    assert left.reason == f"{-left.saving.weight_bytes} bytes more would be stored"
    assert (left.saving.macs, left.saving.traffic) == (-36 * (64 - 32), 4 * 36 * 2 * 2)


def test_ops_and_kernels(found):
    (convolutions,) = found.ops
    assert (convolutions.op, convolutions.nodes, convolutions.cost) == ("CONV_2D", 4, found.after)
    squeeze = next(kernel for kernel in found.kernels if kernel.layer == "squeeze")
    assert squeeze.weights == 16
    assert squeeze.values == 1
    assert 0 < squeeze.zeros < 1


def test_text_and_json(found):
    text = str(found)
    assert "squeeze and expand: " in text
    assert text.startswith("before, per sample: ")
    read = json.loads(json.dumps(found.as_dict()))
    assert read["before"]["macs"] == found.before.macs
    assert [entry["done"] for entry in read["findings"]] == [finding.done for finding in found.findings]


def test_measuring_changes_nothing(found):
    plain = manager.optimize(net(Building()))
    assert plain.savings == {}
    assert plain.before is None
    measured = manager.optimize(net(Building()), measure=True)
    assert measured.changes == plain.changes


def test_at_the_command_line(tmp_path, capsys):
    keras = pytest.importorskip("keras")
    model = keras.Sequential(
        [keras.layers.Input((8,)), keras.layers.Dense(16, name="a"), keras.layers.Dense(4, name="b")]
    )
    model.save(tmp_path / "m.keras")
    written = tmp_path / "found.json"
    arguments = [str(tmp_path / "m.keras"), str(tmp_path / "m.xnn"), "--diagnose", "--diagnosis", str(written)]
    assert main(arguments) == 0
    assert "a and b: two linear layers became one" in capsys.readouterr().out
    read = json.loads(written.read_text())
    assert read["before"]["macs"] == 8 * 16 + 16 * 4
    assert read["after"]["macs"] == 8 * 4
