"""The report: every byte has its place, and the page shows what the data say, whatever the layers are called."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

import converter
import xnn_tf
from schema.ledger import KINDS, ledger
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.report import page
from xnn_tf.compression.report.layer_names import layer_of
from xnn_tf.compression.report.measure import by_step, histogram
from xnn_tf.compression.report.report import SCHEMA, weights_by_layer
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune
from xnn_tf.compression.stages.sensitivity import MeasureSensitivity

RECIPE = Recipe(
    "test",
    (MeasureSensitivity((0.5, 0.9), samples=64), Prune(levels=255)),
    (Conversion("int8-weights"),),
    first_ratio=8.0,
    levels=1,
)


class Page(HTMLParser):
    """Collects tags and text, and fails where a tag is not closed."""

    VOID = {"meta"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def result(keras, trained, problem, tmp_path):
    if keras.__name__ == "keras":
        pytest.skip("the report is the same for both")
    arguments = {"recipe": RECIPE, "epochs": 2, "batch_size": 64, "verbose": False}
    return xnn_tf.compress(trained, *problem, max_drop=0.1, folder=tmp_path / "run", **arguments)


def test_data_and_page_of_a_run(result):
    data = json.loads((result.path.parent / "report.json").read_text())
    assert data == result.report.data
    assert data["schema"] == SCHEMA
    assert data["result"]["bytes"] == data["ledger"]["total"]["total"] == len(result.xnn)
    assert data["base"]["bytes"] == result.base_bytes
    assert [row["layer"] for row in data["ledger"]["layers"]] == ["first", "second", "out"]
    assert [stage["step"] for stage in data["stages"]] == [
        "base",
        "base/int8-weights",
        "once/sensitivity",
        "level-1/prune",
        "level-1/int8-weights",
    ]
    assert data["stages"][3]["score"] > 0.5
    table = xnn_tf.sparsity(result.model)
    for row in data["layers"]:
        assert row["sparsity"] == pytest.approx(table[row["layer"]].sparsity)
    assert set(data["sensitivity"]) == set(data["histograms"]) == {"first/kernel", "second/kernel", "out/kernel"}
    for name, curve in data["sensitivity"].items():
        assert curve[0] == [0.0, 0.0] and curve[-1][0] == 0.9 and curve[-1][1] > 0, name
    counts = data["histograms"]["first/kernel"]
    assert sum(counts["before"]) == sum(counts["after"]) + counts["zeros"] == 16 * 96
    assert 0 < data["latency"]["ms"] < 1000

    text = result.report.to_html()
    shown = Page(text)
    assert f"{len(result.xnn):,} bytes" in shown.text
    assert sum(tag == "svg" for tag, _ in shown.tags) == 4 + 3
    for tag, attributes in shown.tags:
        assert tag not in ("script", "img", "link", "iframe")
        assert not {"src", "href"} & set(attributes)
    assert "http" not in text and "nan" not in text.lower()
    steps = data["ledger"]["steps"]
    assert sum(row["float32"] for row in steps) == result.base_bytes
    assert sum(row["coding"] for row in steps) == len(result.xnn)
    totals = [sum(row[step] for row in steps) for step in ("float32", "neurons", "synapses", "quantization")]
    assert totals == sorted(totals, reverse=True)


def test_a_hostile_layer_name_is_text(result):
    evil = "</title></svg><script>alert('x')</script>&\"'"
    text = json.dumps(result.report.data)
    for name in ("first/kernel", "first", "level-1/prune", "int8-weights", "clouds", "accuracy"):
        text = text.replace(f'"{name}', f'"{json.dumps(evil)[1:-1]}{name}')
    data = json.loads(text)
    data["metric"] = data["model"] = evil
    shown = Page(
        page.render(
            {
                **result.report.data,
                **{k: data[k] for k in data if k != "ledger"},
                "ledger": {
                    **data["ledger"],
                    "layers": [row | {"layer": evil} for row in result.report.data["ledger"]["layers"]],
                    "total": result.report.data["ledger"]["total"],
                    "steps": [row | {"layer": evil} for row in result.report.data["ledger"]["steps"]],
                },
            }
        )
    )
    assert "script" not in {tag for tag, _ in shown.tags}
    assert evil in shown.text
    assert sum(tag == "svg" for tag, _ in shown.tags) == 4 + 3


@pytest.mark.parametrize("quantize", ["none", "int8-weights", "float16"])
def test_every_byte_of_a_file_is_in_the_ledger(keras, rng, quantize):
    layers = keras.layers
    inputs = layers.Input((12, 12, 3))
    x = layers.Conv2D(16, 3, use_bias=False, name="conv")(inputs)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.ReLU()(x)
    x = layers.Flatten()(x)
    model = keras.Model(inputs, layers.Dense(40, name="dense")(x))
    dense = model.get_layer("dense")
    kernel, bias = dense.get_weights()
    values = np.float32([0.1, -0.2, 0.3, -0.4, 0.7])
    kernel = np.where(rng.random(kernel.shape) < 0.8, 0, values[rng.integers(0, 5, kernel.shape)])
    dense.set_weights([kernel, bias])
    calibration = rng.normal(size=(8, 12, 12, 3)).astype(np.float32) if quantize == "int8-weights" else None
    xnn = converter.convert(model, quantize, calibration).bytes

    book = ledger(xnn)

    assert book.header + sum(layer.bytes[kind] for layer in book.layers for kind in KINDS) == len(xnn) == book.total
    assert 0 < book.header < 3000
    rows = {layer.layer: layer for layer in book.layers}
    (dense_row,) = (row for name, row in rows.items() if layer_of(name, ["conv", "dense"]) == "dense")
    assert dense_row.weights >= kernel.size
    assert dense_row.zeros >= np.count_nonzero(kernel == 0)
    if quantize == "none":
        assert dense_row.distinct == 5
        assert dense_row.bytes["codebooks"] > 0
        assert dense_row.bytes["indices"] + dense_row.bytes["positions"] < kernel.size / 4
        assert dense_row.bytes["tables"] > 0
    steps = by_step(weights_by_layer(model), weights_by_layer(model), book)
    assert sum(row["float32"] for row in steps) == 4 * model.count_params()
    assert sum(row["coding"] for row in steps) == len(xnn)


def test_layers_by_the_names_of_nodes():
    paths = ["encoder/dense", "decoder/dense", "out"]
    assert layer_of("decoder/dense", paths) == "decoder/dense"
    assert layer_of("model/decoder/dense/MatMul", paths) == "decoder/dense"
    assert layer_of("out/BiasAdd", paths) == "out"
    assert layer_of("dense", paths) == "encoder/dense"
    assert layer_of("Softmax", paths) is None


def test_histograms_share_their_bins():
    counts = histogram(np.float32([-2, 0, 2]), np.float32([0, 0, 1]))
    assert counts["limit"] == 2 and counts["zeros"] == 2
    assert counts["before"][0] == counts["before"][-1] == counts["before"][20] == 1
    assert sum(counts["after"]) == 1
