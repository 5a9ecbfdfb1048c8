"""Names of inputs and outputs, choice of a subgraph, and sizes that are left open."""

import numpy as np
import pytest

from converter.frontends import tflite
from schema import FormatError, InputError
from tests.support.tflite_files import FileBuilder


def two_to_two() -> FileBuilder:
    b = FileBuilder()
    for name in (
        "serving_default_a:0",
        "serving_default_b:0",
        "StatefulPartitionedCall:1",
        "StatefulPartitionedCall:0",
    ):
        b.tensor(np.float32, (2, 3), name=name)
    b.operator("NEG", [0], [2])
    b.operator("NEG", [1], [3])
    return b


def test_tensor_names_where_there_is_no_signature():
    graph = tflite.read(two_to_two().finish([0, 1], [2, 3]))
    assert graph.input_names == ["serving_default_a:0", "serving_default_b:0"]
    assert graph.output_names == ["StatefulPartitionedCall:1", "StatefulPartitionedCall:0"]
    assert graph.name == "serving_default"


def test_the_signature_names_what_the_subgraph_orders():
    b = two_to_two()
    b.signature("infer", {"b": 1, "a": 0}, {"scores": 2, "boxes": 3})
    graph = tflite.read(b.finish([1, 0], [3, 2]))
    assert (graph.name, graph.input_names, graph.output_names) == ("infer", ["b", "a"], ["boxes", "scores"])


def test_names_are_made_distinct():
    b = FileBuilder()
    for _ in range(4):
        b.tensor(np.float32, (2, 3), name="same")
    b.operator("ADD", [0, 1], [2])
    b.operator("NEG", [2], [3])
    graph = tflite.read(b.finish([0, 1], [2, 3]))
    assert graph.input_names == graph.output_names == ["same", "same_1"]


def test_choosing():
    b = two_to_two()
    b.signature("first", {"x": 0}, {"y": 2})
    content = b.finish([0, 1], [2, 3])
    assert tflite.read(content).input_names == ["x", "serving_default_b:0"]
    assert tflite.read(content, "first").name == "first"
    with pytest.raises(InputError, match="no signature 'other'; the file has 'first'"):
        tflite.read(content, "other")
    b.signature("second", {"z": 1}, {"y": 2})
    content = b.pack()
    with pytest.raises(InputError, match="has the signatures 'first', 'second': choose one"):
        tflite.read(content)
    assert tflite.read(content, "second").input_names == ["serving_default_a:0", "z"]
    b.signature("serving_default", {"w": 0}, {})
    assert tflite.read(b.pack()).input_names == ["w", "serving_default_b:0"]


@pytest.mark.parametrize(("inputs", "subgraph", "message"), [({"x": 2}, 0, "tensor 2 is none"), ({}, 7, "subgraph 7")])
def test_hostile_signatures(inputs, subgraph, message):
    b = two_to_two()
    b.signature("first", inputs, {}, subgraph)
    with pytest.raises(FormatError, match=f"signature 0: {message}"):
        tflite.read(b.finish([0, 1], [2, 3]))


def test_open_sizes():
    b = FileBuilder()
    x = b.tensor(np.float32, (1, 3), name="x", shapeSignature=np.array([-1, 3], np.int32))
    y = b.tensor(np.float32, (1, 3), name="y")
    b.operator("NEG", [x], [y])
    graph = tflite.read(b.finish([x], [y]))
    assert graph.inputs[0].shape == graph.outputs[0].shape == (None, 3)


def test_custom_objects_are_for_keras():
    with pytest.raises(InputError, match="custom_objects"):
        tflite.read(two_to_two().finish([0, 1], [2, 3]), custom_objects={})
