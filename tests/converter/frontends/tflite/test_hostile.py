"""Damaged and hostile files: FormatError with the place, whatever the bytes are."""

from __future__ import annotations

import contextlib
import math
import re

import numpy as np
import pytest

from converter.frontends import tflite
from schema import FormatError, XnnError, evaluate
from tests.corpus import make, tflite_tables
from tests.corpus.watching import visited


def test_every_broken_file_is_refused_with_its_place(tmp_path, repository):
    """In a process that is watched: nothing crashes, hangs or takes memory."""
    cases = make.broken_tflite()
    for number, (content, _) in enumerate(cases.values()):
        (tmp_path / f"{number:03d}.tflite").write_bytes(content)
    outcomes = visited(tmp_path, repository)
    assert len(outcomes) == len(cases) > 210
    expected = zip(cases.items(), outcomes.values(), strict=True)
    wrong = {
        name: (outcome, message)
        for (name, (_, message)), outcome in expected
        if not re.match(r"refused: (FormatError|UnsupportedError): ", outcome) or not re.search(message, outcome)
    }
    assert not wrong
    pairs = zip(cases, outcomes.values(), strict=True)
    unsupported = {name for name, outcome in pairs if "UnsupportedError" in outcome}
    assert unsupported == {"version", "operators unknown"}  # sound files of a format or an operator that xnn lacks


def test_what_the_cases_start_from_is_sound():
    for content in (
        tflite_tables.network().pack(),
        tflite_tables.sparse([0, 3, 1]),
        tflite_tables.signed([("a", 0), ("b", 1)]),
        tflite_tables.moved(tflite_tables.network().pack(), 1, 0),
    ):
        tflite.read(content)


def test_the_file_is_named(tmp_path):
    path = tmp_path / "broken.tflite"
    path.write_bytes(tflite_tables.network().pack()[:200])
    with pytest.raises(FormatError, match=r"broken\.tflite: "):
        tflite.read(path)


@pytest.mark.parametrize("seed", range(4))
def test_mutations(seed):
    """Bytes and 32-bit words changed at random: a graph that can be run, or an XnnError, at once."""
    rng = np.random.default_rng(seed)
    content = np.frombuffer(tflite_tables.network().pack(), np.uint8)
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 0x7FC00000, 255, 4096], "<u4")
    for _ in range(400):
        mutated = content.copy()
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.5:
                mutated[rng.integers(len(mutated))] = rng.integers(256)
            else:
                at = int(rng.integers(len(mutated) // 4)) * 4
                mutated[at : at + 4].view("<u4")[:] = rng.choice(words)
        with contextlib.suppress(XnnError), np.errstate(all="ignore"):
            graph = tflite.read(mutated.tobytes())
            shapes = [[size or 1 for size in tensor.shape] for tensor in graph.inputs]
            if sum(math.prod(shape) for shape in shapes) < 1 << 16:
                arrays = [np.ones(shape, t.dtype) for shape, t in zip(shapes, graph.inputs, strict=True)]
                evaluate.run(graph, arrays)
