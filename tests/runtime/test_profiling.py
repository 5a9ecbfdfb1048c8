"""`python -m runtime profile`: counts that can be worked out by hand, times that fit together, a page that is whole."""

import json
import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

import runtime
import schema
from runtime import profiling
from runtime.__main__ import main
from runtime.profiling import NodeProfile, profile
from schema import Model, Node, Tensor
from schema.ops import attributes as a
from tests.support.engine import graph_of
from tests.support.operands import float_operands, int8_operands


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    """In the working folder m.xnn (int8 convolution, then ADD), and r.xnn (float32 FLOOR, then WHERE).

    Nothing is taken off the times of such small nodes, so that some of each remains.
    """
    monkeypatch.setattr(profiling, "_overhead", lambda runs, threads: 0.0)
    _, x, constants, y = int8_operands(rng, (1, 8, 8, 16), (32, 3, 3, 16), 32, True)
    doubled = Tensor("z", np.int8, None, y.quantization)
    nodes = [
        Node("CONV_2D", [x, *constants], [y], a.Conv2DAttributes(2, 2, padding="SAME"), "first <layer>"),
        Node("ADD", [y, y], [doubled], a.ArithmeticAttributes(), "doubled"),
    ]
    (tmp_path / "m.xnn").write_bytes(schema.write(Model([graph_of(nodes, [x], [doubled])])))
    x, floor, where = Tensor("x", np.float32, (3, 4)), Tensor("f", np.float32), Tensor("w", np.int64)
    yes = Tensor("c", np.bool_)
    nodes = [
        Node("FLOOR", [x], [floor], None, "floor"),
        Node("GREATER", [x, floor], [yes], None, "greater"),
        Node("WHERE", [yes], [where], None, "where"),
    ]
    (tmp_path / "r.xnn").write_bytes(schema.write(Model([graph_of(nodes, [x], [where])])))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def profiled(capsys, command: str) -> dict:
    assert main(f"profile {command} --runs 3 --json".split()) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("threads", [1, 2])
def test_counts_and_times(files, capsys, threads):
    summary = profiled(capsys, f"m.xnn --threads {threads}")
    convolution, addition = summary["nodes"]
    assert (convolution["layer"], convolution["op"]) == ("first <layer>", "CONV_2D")
    assert convolution["macs"] == 4 * 4 * 32 * 9 * 16
    assert convolution["bytes"] == 8 * 8 * 16 + 32 * 9 * 16 + 4 * 32 + 4 * 4 * 32
    assert addition["macs"] == 0
    assert addition["bytes"] == 2 * 4 * 4 * 32
    assert addition["gmacs"] is addition["share_of_peak"] is None
    assert sum(node["share"] for node in summary["nodes"]) == pytest.approx(1)
    assert summary["threads"] == threads
    assert list(summary["peak_gmacs"]) == ["int8"]
    for node in summary["nodes"]:
        assert node["median_us"] > 0
        assert node["gigabytes"] == pytest.approx(node["bytes"] / node["median_us"] / 1e3)
    assert convolution["gmacs"] == pytest.approx(convolution["macs"] / convolution["median_us"] / 1e3)
    assert convolution["share_of_peak"] == pytest.approx(convolution["gmacs"] / summary["peak_gmacs"]["int8"])
    assert sum(kernel["nodes"] for kernel in summary["kernels"]) == 2
    assert sum(kernel["us"] for kernel in summary["kernels"]) == pytest.approx(summary["sum_us"])


def test_nodes_whose_sizes_depend_on_data_are_one_row(files, capsys):
    summary = profiled(capsys, "r.xnn")
    assert [(node["op"], node["kernel"]) for node in summary["nodes"]] == [
        ("FLOOR", "reference"),
        ("GREATER", "reference"),
        ("WHERE", "reference"),
    ]
    assert summary["nodes"][2]["bytes"] is None
    assert summary["nodes"][2]["median_us"] > 0
    assert summary["peak_gmacs"] == {}


def test_numbers_of_a_node():
    node = NodeProfile("layer", "CONV_2D", "kernel", 50.0, 10_000_000, 200_000, 400.0)
    assert (node.gmacs, node.share_of_peak, node.gigabytes) == (200.0, 0.5, 4.0)
    unknown = NodeProfile("layer", "WHERE", "reference", 0.0)
    assert unknown.gmacs is unknown.share_of_peak is unknown.gigabytes is None


@pytest.mark.parametrize("overhead", [0.0, 1e9])
def test_the_start_of_a_node_is_taken_off(files, monkeypatch, overhead):
    monkeypatch.setattr(profiling, "_overhead", lambda runs, threads: overhead)
    found = profile(runtime.load("m.xnn"), [np.zeros((1, 8, 8, 16), np.int8)], 1, 1)
    assert found.overhead == overhead
    assert all((node.microseconds == 0) == (overhead > 0) for node in found.nodes)
    by_reference = profile(runtime.load("r.xnn"), [np.zeros((3, 4), np.float32)], 1, 1)
    assert all(node.microseconds > 0 for node in by_reference.nodes)


@pytest.mark.parametrize("threads", [1, 2])
def test_starting_a_node_takes_time(threads):
    assert profiling._overhead(1, threads) > 0


def test_float32_is_measured_against_float32(rng):
    array, x, constants, y = float_operands(rng, (1, 6, 6, 8), (8, 1, 1, 8), 8, True)
    graph = graph_of([Node("CONV_2D", [x, *constants], [y], a.Conv2DAttributes())], [x], [y])
    found = profile(runtime.load(schema.write(Model([graph]))), [array], 2, 1)
    assert found.nodes[0].peak == found.peaks["float32"] > 0
    assert found.call > 0


def test_table(files, capsys):
    assert main("profile m.xnn --runs 2".split()) == 0
    printed = capsys.readouterr().out
    assert re.search(r"us +share +GMAC/s +of peak +GB/s +bytes +op +kernel +layer\n", printed)
    assert re.search(r"%.* CONV_2D .* first <layer>\n", printed)
    assert "peak: a product of 768 x 256 x 256 as a graph of its own reaches int8" in printed


@pytest.mark.parametrize("net", ["m", "r"])
def test_page(files, capsys, net):
    summary = profiled(capsys, f"{net}.xnn --html page.html")
    page = (files / "page.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    for node in summary["nodes"]:
        assert node["layer"] in unescape(page)
    assert "<layer>" not in page
    drawings = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert len(drawings) == (2 if net == "m" else 1)  # nothing to compare with a peak in r.xnn
    strip = drawings[0].findall("rect")
    assert len(strip) == len(summary["nodes"])
    assert sum(float(r.get("width")) for r in strip) == pytest.approx(1000, abs=0.1)
    for circle in drawings[-1].findall("circle"):
        assert 60 <= float(circle.get("cx")) <= 940
        assert 10 <= float(circle.get("cy")) <= 320


def test_a_page_that_cannot_be_written(files, capsys):
    assert main("profile m.xnn --runs 1 --html nowhere/page.html".split()) == 2
    assert capsys.readouterr().err.startswith("error: ")
