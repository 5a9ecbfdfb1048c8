"""Rows of `benchmarks/engine.py` as lines, as a Markdown file and as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.networks import IMAGE_NETS, SMALL_NETS


def line(row: Any, engines: Sequence[str]) -> str:
    """One net on the terminal."""
    parts = [f"{row.dtype:8}{row.threads} {row.net:16}"]
    for name in engines:
        found, ratio = row.milliseconds.get(name), row.ratio(name)
        parts.append(f"{name} {found:.3f}" + ("" if name == "xnn" else f" ({ratio:.2f})") if found else f"{name} -")
    return "  ".join(parts)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows: Sequence[Any]) -> str:
    """Geometric means of the ratios to the best peer and to LiteRT, over the large nets and over the small ones."""
    lines = []
    for what, nets in (("image nets", IMAGE_NETS), ("small nets", SMALL_NETS)):
        chosen = [row for row in rows if row.net in nets and row.best_ratio() is not None]
        if chosen:
            best = geometric_mean([row.best_ratio() for row in chosen])
            lite = [row.ratio("LiteRT") for row in chosen if row.ratio("LiteRT")]
            worst = max(chosen, key=lambda row: row.best_ratio())
            lines.append(
                f"  {what}: xnn / best peer {best:.3f}, largest {worst.best_ratio():.2f} ({worst.net})"
                + (f"; xnn / LiteRT {geometric_mean(lite):.3f}" if lite else "")
            )
    return "\n".join(lines)


def write(path: Path, heading: str, rows: Sequence[Any], engines: Sequence[str]) -> None:
    """The Markdown file, and `path` with .svg."""
    text = [
        "# Speed beside other engines",
        "",
        f"Made by `python benchmarks/engine.py --write benchmarks/{path.name}`. {heading}.",
        "",
        "Milliseconds of one call (medians), and in brackets xnn / engine: below 1, xnn is faster. The best peer is "
        "the better one of LiteRT and OpenVINO.",
        "",
        f"![Ratios]({path.with_suffix('.svg').name})",
    ]
    for dtype, threads in dict.fromkeys((row.dtype, row.threads) for row in rows):
        chosen = [row for row in rows if (row.dtype, row.threads) == (dtype, threads)]
        text += ["", f"## {dtype}, {threads} thread{'s' * (threads > 1)}", ""]
        text += ["| net | " + " | ".join(engines) + " | xnn / best peer |", "|---" * (len(engines) + 2) + "|"]
        for row in chosen:
            cells = [_cell(row, name) for name in engines]
            best = row.best_ratio()
            text.append(f"| {row.net} | " + " | ".join(cells) + f" | {'-' if best is None else f'{best:.2f}'} |")
        text += ["", *(part.strip() + "  " for part in summary(chosen).splitlines())]
    missing = [(row, name, why) for row in rows for name, why in row.missing.items()]
    reasons = dict.fromkeys(f"{row.net} {row.dtype}, {name}: {why}" for row, name, why in missing)
    if reasons:
        text += ["", "## What is missing", "", *(f"- {reason}" for reason in reasons)]
    path.write_text("\n".join(text) + "\n")
    _chart(path.with_suffix(".svg"), rows, engines)


def _cell(row: Any, name: str) -> str:
    found = row.milliseconds.get(name)
    if found is None:
        return "-"
    return f"{found:.3f}" if name == "xnn" else f"{found:.3f} ({row.ratio(name):.2f})"


def _chart(path: Path, rows: Sequence[Any], engines: Sequence[str]) -> None:
    """Bars of xnn / engine for each net, a panel for each dtype and number of threads."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys((row.dtype, row.threads) for row in rows))
    figure = Figure(figsize=(11, 3 * len(groups)), layout="constrained")
    peers = [name for name in engines if name != "xnn"]
    for axes, (dtype, threads) in zip(figure.subplots(len(groups), squeeze=False)[:, 0], groups, strict=True):
        chosen = [row for row in rows if (row.dtype, row.threads) == (dtype, threads)]
        for i, name in enumerate(peers):
            places = [j + (i - (len(peers) - 1) / 2) * 0.8 / len(peers) for j in range(len(chosen))]
            axes.bar(places, [row.ratio(name) or 0 for row in chosen], 0.8 / len(peers), label=name)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xticks(range(len(chosen)), [row.net for row in chosen])
        axes.set_ylabel("xnn / engine")
        axes.set_title(f"{dtype}, {threads} thread{'s' * (threads > 1)} (below 1: xnn is faster)")
        axes.legend(fontsize="small")
    figure.savefig(path)
