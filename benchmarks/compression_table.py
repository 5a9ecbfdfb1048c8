"""Rows of `benchmarks/compression.py` as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

HEADING = """# Bytes against accuracy

Made by `python benchmarks/compression.py` from `benchmarks/compression.json`, one row for each size asked for: means
over seeds, and in brackets the lowest and the highest. Every byte of a file counts; accuracy is that of the file on the
whole test set; base models are those of the zoo, as float32 (4 bytes a parameter).
"""
EQUAL = """## At equal accuracy

For each file of Deep Compression, the bytes that `xqueeze` needs for its accuracy: between two points of its curve, the
logarithm of bytes by straight lines; below the lowest of them "at most" that one's; above the highest unknown.
"""
EQUAL_COLUMNS = ("base model", "test", "deep-compression", "xqueeze", "x smaller")
COLUMNS = ("base model", "bytes", "test", "recipe", "asked for", "bytes", "x smaller", "test", "points lost", "seeds")


Curve = Sequence[tuple[float, float]]
"""(accuracy in per cent, bytes), the smallest file first."""


def table(runs: Sequence[Any]) -> str:
    """Markdown: the nets in the order of their first run, recipes by name, the largest files first."""
    groups: dict[tuple[str, str, int], list[Any]] = {}
    for run in runs:
        groups.setdefault((run.net, run.recipe, run.size), []).append(run)
    nets = list(dict.fromkeys(run.net for run in runs))
    ordered = sorted(groups, key=lambda key: (nets.index(key[0]), key[1], -key[2]))
    lines = [HEADING, *_header(COLUMNS), *(_row(groups[key]) for key in ordered)]
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for key in reversed(ordered):
        curves.setdefault(key[:2], []).append(_point(groups[key]))
    equal = [row for net in nets for row in _equal_rows(net, curves)]
    if equal:
        lines += ["", EQUAL, *_header(EQUAL_COLUMNS), *equal]
    made = sorted({f"{run.date}, {run.versions}" for run in runs})
    return "\n".join([*lines, "", *made, ""])


def bytes_at(accuracy: float, curve: Curve) -> tuple[float, bool] | None:
    """(bytes of a curve at that accuracy, whether this is only an upper bound); None above all of its points."""
    tests, sizes = (np.array(column) for column in zip(*curve, strict=True))
    tests = np.maximum.accumulate(tests)  # a larger file that does worse is no reason to take it
    if accuracy > tests[-1]:
        return None
    first = int(np.argmax(tests >= accuracy))
    if first == 0:
        return float(sizes[0]), accuracy < tests[0]
    share = (accuracy - tests[first - 1]) / (tests[first] - tests[first - 1])
    return float(np.exp(np.interp(share, [0, 1], np.log(sizes[first - 1 : first + 1])))), False


def _equal_rows(net: str, curves: dict[tuple[str, str], list[tuple[float, float]]]) -> list[str]:
    ours = curves.get((net, "xqueeze"))
    rows = []
    for accuracy, size in reversed(curves.get((net, "deep-compression"), [])):
        found = None if ours is None else bytes_at(accuracy, ours)
        needed, ratio = "-", "-"
        if found is not None:
            bytes_, bound = found
            needed = f"{'at most ' if bound else ''}{bytes_:,.0f}"
            ratio = f"{'at least ' if bound else ''}{size / bytes_:.2f}"
        rows.append("| " + " | ".join([net, f"{accuracy:.2f} %", f"{size:,.0f}", needed, ratio]) + " |")
    return rows


def _header(columns: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


def _point(runs: Sequence[Any]) -> tuple[float, float]:
    """(accuracy in per cent, bytes), means over seeds."""
    return float(np.mean([100 * run.test for run in runs])), float(np.mean([run.bytes for run in runs]))


def _row(runs: Sequence[Any]) -> str:
    first = runs[0]
    tests = [100 * run.test for run in runs]
    test, size = _point(runs)
    base = 100 * first.base_test
    spread = f" ({min(tests):.2f}-{max(tests):.2f})" if len(runs) > 1 else ""
    cells = [
        first.net,
        f"{first.base_bytes:,}",
        f"{base:.2f} %",
        first.recipe,
        f"{first.size:,}",
        f"{size:,.0f}",
        f"{first.base_bytes / size:.1f}",
        f"{test:.2f} %{spread}",
        f"{base - test:.2f}",
        str(len(runs)),
    ]
    return "| " + " | ".join(cells) + " |"
