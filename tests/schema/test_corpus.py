"""Hostile files are refused, each with its place; mutations of sound models are refused, stopped or run. Nothing
crashes, hangs or takes memory: it all happens in a process that is watched from outside.
"""

import json
import re
from collections import Counter

import flatbuffers
import pytest

import schema
import schema.ops
from schema.errors import FormatError
from schema.flatbuffer import MAX_DEPTH, Field, Layout, Reader
from schema.generated import xnn_generated as fb
from tests.corpus import make, models, mutations, objects
from tests.corpus.watching import visited


def test_every_broken_file_is_refused_with_its_place(tmp_path, repository):
    make.make(tmp_path, each=0)
    outcomes = visited(tmp_path / "broken", repository)
    expected = json.loads((tmp_path / "expected.json").read_text())
    assert len(outcomes) == len(expected) > 150
    wrong = {
        name: outcome
        for name, outcome in outcomes.items()
        if not outcome.startswith("refused: FormatError: ") or not re.search(expected[name], outcome)
    }
    assert not wrong


@pytest.mark.parametrize("each", [3, pytest.param(100, marks=pytest.mark.nightly)])
def test_mutations_are_refused_stopped_or_run(each, tmp_path, repository):
    make.write(tmp_path, mutations.mutated(each))
    outcomes = visited(tmp_path, repository)
    count = Counter(outcome.split(":")[0] for outcome in outcomes.values())
    assert {o for o in outcomes.values() if o.startswith("refused") and "FormatError" not in o} == set()
    assert count["refused"] > len(outcomes) // 4
    assert count["ran"] > len(outcomes) // 4


def test_the_corpus_is_the_same_each_time():
    assert make.broken() == make.broken()
    assert mutations.mutated(1) == mutations.mutated(1)


def test_what_the_cases_start_from_is_sound():
    coded = [objects.rans(b"\0" + table + objects.RUN, 16) for table in (objects.ONE, objects.TWO)]
    for data in (objects.sealed(objects.relu_graph()), objects.stored([6]), objects.conv([3, 1, 1, 2]), *coded):
        assert len(schema.read(data).graph.nodes) == 1
    needed = {fb.Model.GetRootAs(bytearray(file), 0).MinimumReader() for file in models.files().values()}
    assert needed == {1, 2, 3}  # some hold entropy-coded streams, some floats as multiples of a step
    assert {node.op for graph in models.graphs() for node in graph.nodes} == set(schema.ops.NAMES)


def chain(depth: int) -> bytes:
    """Tables, each of which holds the next."""
    builder, inner = flatbuffers.Builder(), 0
    for _ in range(depth):
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, inner, 0)
        inner = builder.EndObject()
    builder.Finish(inner)
    return bytes(builder.Output())


def test_tables_too_deep():
    layout = Layout({"Node": (Field("child", "Node"),)}, {}, {})
    assert Reader(chain(MAX_DEPTH + 1), layout).root("Node")["child"]
    with pytest.raises(FormatError, match=r"Node(\.child)+: nested deeper than 16"):
        Reader(chain(MAX_DEPTH + 2), layout).root("Node")


def test_what_shared_streams_decode_to_is_one_object():
    both = [objects.tensor(shape=[6], constant=objects.constant()) for _ in range(2)]
    concatenation = objects.node(
        objects.CONCATENATION, [2, 3, 0], attributes=objects.fb.AxisAttributesT(), name="concatenation"
    )
    graph = objects.relu_graph(tensors=[objects.tensor(shape=[6]), objects.tensor(), *both], nodes=[concatenation])
    first, second, _ = schema.read(objects.sealed(graph)).graph.nodes[0].inputs
    assert first is not second
    assert first.constant is second.constant
