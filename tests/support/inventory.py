"""What tests compare with what, counted while they do it: the parity harness and the engine's tests call `record` after
each comparison that held, so that nothing is in the inventory that has not run.

    python -m tests.support.inventory [--profile ci|nightly|...] [pytest arguments]

runs the parity tests and prints, for each op, the dtypes and the number of cases.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numpy as np

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = "XNN_INVENTORY"
"""The environment variable that names a folder for the counts of each test process."""
PARITY_TESTS = ("tests/schema/ops", "tests/converter/frontends/tflite")
KERNEL_TESTS = ("tests/runtime",)
LITERT, ELSEWHERE, KERNEL = "LiteRT", "elsewhere", "kernel"
"""Oracles of references: LiteRT, or TensorFlow, Keras, numpy; and the references as the oracle of kernels."""
ACCEPTED = "accepted"
"""Not compared: an op's `infer` takes the dtype in place of the one that was."""
CANDIDATES = tuple(np.dtype(name) for name in ("float32", "int8", "int16"))

OF_INPUT = frozenset(
    """EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL ARG_MAX ARG_MIN SHAPE RANK WHERE DEQUANTIZE
    NON_MAX_SUPPRESSION_V5""".split()
)
"""Ops whose outputs have a dtype of their own, whatever they work on."""


class Entry(NamedTuple):
    """oracle: what the op was compared with. drawn: by hypothesis."""

    oracle: str
    op: str
    dtype: str
    drawn: bool


_counts: Counter[Entry] = Counter()
_probed: set[tuple[str, str]] = set()


def dtype_of(op: str, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> str:
    """The dtype that a node works on."""
    kind = inputs[0] if op in OF_INPUT else outputs[0]
    assert kind is not None
    return str(np.dtype(kind.dtype))


def record(oracle: str, op: str, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> None:
    """Count a comparison that held."""
    _counts[Entry(oracle, op, dtype_of(op, inputs, outputs), hypothesis.currently_in_test_context())] += 1


def probe(op: str, attributes: Any, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> None:
    """Find out which other dtypes the op takes where it took these, once for each of its dtypes."""
    given = dtype_of(op, inputs, outputs)
    if (op, given) in _probed:
        return
    _probed.add((op, given))
    for dtype in CANDIDATES:
        quantization = None if dtype.kind == "f" else Quantization(0.1)
        types = [
            TensorType(t.shape, dtype, quantization) if t is not None and str(t.dtype) == given else t for t in inputs
        ]
        if types == list(inputs):
            continue
        try:
            results = ops.get(op).infer(attributes, types, [None] * len(types))
        except (ShapeError, UnsupportedError):
            continue
        _counts[Entry(ACCEPTED, op, dtype_of(op, types, results), False)] += 1


def save() -> None:
    """Write this process's counts where the environment says."""
    if folder := os.environ.get(FOLDER):
        rows = [[*entry, count] for entry, count in _counts.items()]
        (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(rows))


def load(folder: Path) -> Counter[Entry]:
    """The counts of all processes."""
    counts: Counter[Entry] = Counter()
    for path in folder.glob("*.json"):
        for *entry, count in json.loads(path.read_text()):
            counts[Entry(*entry)] += count
    return counts


def run(profile: str, arguments: Iterable[str]) -> Counter[Entry]:
    """Run tests in a process of their own and count what they compare. Raises RuntimeError where they fail."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *arguments]
        environment = os.environ | {FOLDER: folder, "HYPOTHESIS_PROFILE": profile}
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout[-4000:] + done.stderr[-2000:])
        return load(Path(folder))


def pairs(counts: Counter[Entry], *oracles: str) -> set[tuple[str, str]]:
    """(op, dtype) compared with these."""
    return {(entry.op, entry.dtype) for entry in counts if entry.oracle in oracles}


def cases(counts: Counter[Entry], op: str, *oracles: str, drawn: bool = True) -> int:
    """How many cases of an op were compared with these; only the drawn ones, unless told otherwise."""
    return sum(n for e, n in counts.items() if e.op == op and e.oracle in oracles and (e.drawn or not drawn))


def report(counts: Counter[Entry]) -> str:
    """A line for each op, and the sums."""
    lines = [f"{'op':32}{'drawn':>7}{'given':>7}  dtypes (kernels in capitals)"]
    reference, kernel = pairs(counts, LITERT, ELSEWHERE), pairs(counts, KERNEL)
    for op in sorted({op for op, _ in reference}):
        drawn = cases(counts, op, LITERT, ELSEWHERE)
        given = cases(counts, op, LITERT, ELSEWHERE, drawn=False) - drawn
        dtypes = sorted(d for o, d in reference if o == op)
        names = " ".join(d.upper() if (op, d) in kernel else d for d in dtypes)
        lines.append(f"{op:32}{drawn:7}{given:7}  {names}")
    ops = {op for op, _ in reference}
    litert = pairs(counts, LITERT)
    lines.append(
        f"{len(ops)} ops, {len(reference)} ops x dtypes under parity ({len(litert)} of them with LiteRT), "
        f"{sum(cases(counts, op, LITERT, ELSEWHERE) for op in ops)} drawn cases, at least "
        f"{min((cases(counts, op, LITERT, ELSEWHERE) for op in ops), default=0)} of each op; "
        f"{len(kernel)} ops x dtypes have kernels, compared in "
        f"{sum(n for e, n in counts.items() if e.oracle == KERNEL)} cases"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="ci", help="of hypothesis: ci or nightly")
    known, rest = parser.parse_known_args()
    print(report(run(known.profile, rest or [*PARITY_TESTS, *KERNEL_TESTS])))
