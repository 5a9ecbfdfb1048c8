"""Models survive writing and reading; hostile metadata behind right checksums is refused."""

import numpy as np
import pytest

import schema
from schema import Constant, Graph, Model, Node, Quantization, Tensor, container, evaluate, metadata
from schema.coding import codecs
from schema.errors import FormatError
from schema.generated import xnn_generated as fb
from schema.ops import attributes as a


def two_outputs(rng) -> Model:
    """conv -> (relu as 'b', mean as 'a'), with a quantized branch."""
    x = Tensor("x", np.float32, (None, 8, 8, 3))
    kernel = Tensor.from_array("w", rng.standard_normal((4, 3, 3, 3)).astype(np.float32))
    conv, relu, mean = (Tensor(n, np.float32) for n in ("conv", "relu", "mean"))
    quantized = Tensor("q", np.int8, quantization=Quantization(0.05, 3))
    axes = Tensor.from_array("axes", np.array([1, 2], np.int32))
    nodes = [
        Node(
            "CONV_2D",
            [x, kernel, None],
            [conv],
            a.Conv2DAttributes(padding="EXPLICIT", pads=(1, 0, 2, 0), activation="CLAMP", clamp_max=4.5),
            "stem",
        ),
        Node("RELU", [conv], [relu], None, "relu"),
        Node("MEAN", [conv, axes], [mean], a.ReduceAttributes(keep_dims=True), "gap"),
        Node("QUANTIZE", [relu], [quantized], a.DTypeAttributes(dtype=np.dtype(np.int8)), "quantize"),
    ]
    graph = Graph(nodes, [x], ["image"], [quantized, mean, mean], ["b", "a", "again"], "serving")
    return Model([graph], "FP32_ROUND_EVEN", "test", {"key": "value"})


@pytest.fixture
def model(rng) -> Model:
    return two_outputs(rng)


def test_everything_survives(model, rng):
    read = schema.read(schema.write(model))
    assert (read.requantization, read.producer, read.metadata) == ("FP32_ROUND_EVEN", "test", {"key": "value"})
    graph, before = read.graph, model.graph
    assert graph.name == "serving"
    assert (graph.input_names, graph.output_names) == (["image"], ["b", "a", "again"])
    assert graph.inputs[0].shape == (None, 8, 8, 3)
    assert graph.outputs[1] is graph.outputs[2]
    assert graph.outputs[0].quantization == Quantization(0.05, 3)
    for node, original in zip(graph.nodes, before.nodes, strict=True):
        assert (node.op, node.name, node.attributes) == (original.op, original.name, original.attributes)
    assert graph.nodes[0].inputs[2] is None
    x = rng.standard_normal((2, 8, 8, 3)).astype(np.float32)
    for after, expected in zip(evaluate.run(graph, [x]), evaluate.run(before, [x]), strict=True):
        np.testing.assert_array_equal(after, expected)


def test_files_read_from_disk_name_the_path(model, tmp_path):
    path = tmp_path / "m.xnn"
    path.write_bytes(schema.write(model))
    assert schema.read(path).graph.input_names == ["image"]
    path.write_bytes(b"PK\3\4 something else entirely")
    with pytest.raises(FormatError, match=r"m\.xnn.*no \.xnn file"):
        schema.read(path)
    with pytest.raises(FormatError, match="there is no file"):
        schema.read(tmp_path / "missing.xnn")
    with pytest.raises(FormatError, match="folder"):
        schema.read(tmp_path)
    (tmp_path / "empty.xnn").touch()
    with pytest.raises(FormatError, match="too few"):
        schema.read(tmp_path / "empty.xnn")


def test_flatc_reader_agrees(model):
    """Anybody can read the metadata with flatc's own code."""
    file = schema.write(model, flatbuffer=True)
    root = fb.Model.GetRootAs(bytearray(container.unpack(file)[container.METADATA]), 0)
    assert fb.Model.ModelBufferHasIdentifier(file, 0)
    node = root.Graphs(0).Nodes(0)
    assert node.Name() == b"stem"
    conv = fb.Conv2DAttributes()
    conv.Init(node.Attributes().Bytes, node.Attributes().Pos)
    assert (conv.PadsAsNumpy().tolist(), conv.Activation(), conv.ClampMax()) == ([1, 0, 2, 0], fb.Activation.CLAMP, 4.5)


def test_small_models_stay_small(rng):
    """A dense layer of 20 weights costs a few hundred bytes, not kilobytes of padding and defaults."""
    x, y = Tensor("x", np.float32, (None, 5)), Tensor("y", np.float32)
    w = Tensor.from_array("w", rng.standard_normal((4, 5)).astype(np.float32))
    graph = Graph([Node("FULLY_CONNECTED", [x, w], [y], a.FullyConnectedAttributes(), "fc")], [x], ["x"], [y], ["y"])
    assert len(schema.write(Model([graph]))) < 80 + 160


def test_equal_constants_are_stored_once(rng):
    def chain(weights):
        x = Tensor("x", np.float32, (None, 64))
        tensors = [x] + [Tensor("t", np.float32) for _ in weights]
        nodes = [
            Node("FULLY_CONNECTED", [tensors[i], w], [tensors[i + 1]], a.FullyConnectedAttributes(), f"fc{i}")
            for i, w in enumerate(weights)
        ]
        return len(schema.write(Model([Graph(nodes, [x], ["x"], [tensors[-1]], ["y"])])))

    array = rng.standard_normal((64, 64)).astype(np.float32)
    shared = Tensor.from_array("w", array)
    one, tied, equal = chain([shared]), chain([shared, shared]), chain([shared, Tensor.from_array("w2", array.copy())])
    assert tied < one + 300
    assert equal < one + 400


def test_large_streams_are_aligned_for_mapping(rng):
    x, y = Tensor("x", np.float32, (None, 64)), Tensor("y", np.float32)
    w = Tensor.from_array("w", rng.standard_normal((64, 64)).astype(np.float32))
    graph = Graph([Node("FULLY_CONNECTED", [x, w], [y], a.FullyConnectedAttributes(), "fc")], [x], ["x"], [y], ["y"])
    data = schema.write(Model([graph]))
    assert data.index(w.value.tobytes()) % 64 == 0


def product(values: np.ndarray) -> Model:
    x, y = Tensor("x", np.float32, (None, values.shape[1])), Tensor("y", np.float32)
    node = Node("FULLY_CONNECTED", [x, Tensor.from_array("w", values)], [y], a.FullyConnectedAttributes(), "fc")
    return Model([Graph([node], [x], ["x"], [y], ["y"])])


def minimum_reader(file: bytes) -> int:
    return metadata.read(container.unpack(file))["minimum_reader"]


def test_files_of_older_writers(monkeypatch, rng):
    """What knew no entropy coding wrote files that need no more than a reader of version 1; they read the same."""
    whole = np.where(rng.random((64, 64)) < 0.9, 0, rng.integers(-7, 8, (64, 64))).astype(np.float32)
    values = whole / np.float32(7)
    coded = schema.write(product(values))
    monkeypatch.setattr(codecs, "CODECS", {name: codecs.CODECS[name] for name in ("RAW", "PACKED")})
    older = schema.write(product(values))
    monkeypatch.undo()
    assert len(coded) < len(older) - 100
    assert [minimum_reader(file) for file in (older, coded, schema.write(product(whole)))] == [1, 2, 3]
    for file in (older, coded):
        np.testing.assert_array_equal(schema.read(file).graph.nodes[0].inputs[1].value, values)


def test_values_narrower_than_their_tensor(rng):
    """float16 and int8 x scale stand for float32."""
    x, y, z = Tensor("x", np.float32, (None, 5)), Tensor("y", np.float32), Tensor("z", np.float32)
    half = Tensor("half", np.float32, (4, 5), constant=Constant(rng.standard_normal((4, 5)).astype(np.float16)))
    scale = rng.random(3).astype(np.float32)
    ints = rng.integers(-127, 128, (3, 4), dtype=np.int8)
    scaled = Tensor("scaled", np.float32, (3, 4), constant=Constant(ints, scale, 0))
    nodes = [
        Node("FULLY_CONNECTED", [x, half], [y], a.FullyConnectedAttributes()),
        Node("FULLY_CONNECTED", [y, scaled], [z], a.FullyConnectedAttributes()),
    ]
    read = schema.read(schema.write(Model([Graph(nodes, [x], ["x"], [z], ["z"])]))).graph
    assert read.nodes[0].inputs[1].dtype == np.float32
    np.testing.assert_array_equal(read.nodes[0].inputs[1].value, half.constant.values.astype(np.float32))
    np.testing.assert_array_equal(read.nodes[1].inputs[1].value, ints * scale[:, None])
