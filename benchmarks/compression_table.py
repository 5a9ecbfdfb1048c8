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
COLUMNS = ("base model", "bytes", "test", "recipe", "asked for", "bytes", "x smaller", "test", "points lost", "seeds")


def table(runs: Sequence[Any]) -> str:
    """Markdown: the nets in the order of their first run, recipes by name, the largest files first."""
    groups: dict[tuple[str, str, int], list[Any]] = {}
    for run in runs:
        groups.setdefault((run.net, run.recipe, run.size), []).append(run)
    nets = list(dict.fromkeys(run.net for run in runs))
    ordered = sorted(groups, key=lambda key: (nets.index(key[0]), key[1], -key[2]))
    lines = [HEADING, "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += [_row(groups[key]) for key in ordered]
    made = sorted({f"{run.date}, {run.versions}" for run in runs})
    return "\n".join([*lines, "", *made, ""])


def _row(runs: Sequence[Any]) -> str:
    first = runs[0]
    sizes, tests = [run.bytes for run in runs], [100 * run.test for run in runs]
    base = 100 * first.base_test
    spread = f" ({min(tests):.2f}-{max(tests):.2f})" if len(runs) > 1 else ""
    cells = [
        first.net,
        f"{first.base_bytes:,}",
        f"{base:.2f} %",
        first.recipe,
        f"{first.size:,}",
        f"{np.mean(sizes):,.0f}",
        f"{first.base_bytes / np.mean(sizes):.1f}",
        f"{np.mean(tests):.2f} %{spread}",
        f"{base - np.mean(tests):.2f}",
        str(len(runs)),
    ]
    return "| " + " | ".join(cells) + " |"
