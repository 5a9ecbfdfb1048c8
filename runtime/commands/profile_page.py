"""A profile drawn as one HTML page that needs no other file: where the time goes, and how far from the ceilings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from runtime.commands.profile_summary import KERNEL_COLUMNS, NODE_COLUMNS, Columns, cells, heading

_WIDTH, _STRIP, _ROOFLINE = 1000, 60, 360  # pixels
_LEFT, _BELOW = 60, 40  # room for the labels of axes
_GOLDEN_ANGLE = 137.508  # degrees: neighbours of any number of hues made with it differ

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$title</title>
<style>
body { font: 14px sans-serif; margin: 2em auto; max-width: 1200px; color: #222; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: 2px 8px; text-align: left; border-bottom: 1px solid #ddd; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.layer { word-break: break-all; }
svg { width: 100%; height: auto; font: 12px sans-serif; }
.bar { display: inline-block; height: 10px; }
</style>
</head>
<body>
<h1>$title</h1>
$heading
<h2>Time, node after node</h2>
$strip
<h2>Kernels</h2>
$kernels
$roofline
<h2>Nodes</h2>
$nodes
</body>
</html>
""")


def render(summary: Mapping[str, Any]) -> str:
    """The page for what `profile_summary.summarize` gives."""
    colours = {name: f"hsl({i * _GOLDEN_ANGLE % 360:.0f} 65% 55%)" for i, name in enumerate(_names(summary["nodes"]))}
    return _PAGE.substitute(
        title=escape(f"Profile of {summary['model']}"),
        heading="\n".join(f"<p>{escape(line)}</p>" for line in heading(summary)),
        strip=_strip(summary["nodes"], colours),
        kernels=_table(summary["kernels"], KERNEL_COLUMNS, colours),
        roofline=_roofline(summary, colours),
        nodes=_table(summary["nodes"], NODE_COLUMNS, colours),
    )


def _names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(node["kernel"] for node in nodes))


def _colour(kernel: str, colours: Mapping[str, str]) -> str:
    return colours.get(kernel) or colours[kernel.split(" ")[0]]  # "reference FLOOR" has that of "reference"


def _tooltip(row: Mapping[str, Any]) -> str:
    text = ", ".join(
        f"{value} {title}" if title in ("us", "GMAC/s", "GB/s", "of peak") else value
        for value, (_, title, _) in zip(cells(row, NODE_COLUMNS), NODE_COLUMNS, strict=True)
        if value != "-" and title not in ("bytes", "share")
    )
    return f"<title>{escape(text)}</title>"


def _strip(nodes: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> str:
    """One rectangle for each node, as wide as its share of the time."""
    parts, x = [], 0.0
    for node in nodes:
        width = _WIDTH * node["share"]
        parts.append(
            f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="{_STRIP}" fill="{colours[node["kernel"]]}" '
            f'stroke="white" stroke-width="0.5">{_tooltip(node)}</rect>'
        )
        x += width
    return f'<svg viewBox="0 0 {_WIDTH} {_STRIP}" role="img">{"".join(parts)}</svg>'


def _roofline(summary: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """Nodes with products by arithmetic intensity and speed, both on logarithmic axes; the peaks as lines.

    Williams, Waterman and Patterson 2009.
    """
    nodes = [node for node in summary["nodes"] if node["gmacs"] and node["bytes"]]
    if not nodes:
        return ""
    intensities = [node["macs"] / node["bytes"] for node in nodes]
    xs = _decades(intensities)
    ys = _decades([*(node["gmacs"] for node in nodes), *summary["peak_gmacs"].values()])
    right, bottom = _WIDTH - _LEFT, _ROOFLINE - _BELOW

    def place(value: float, decades: tuple[int, int], start: float, end: float) -> float:
        first, last = decades
        return start + (end - start) * (math.log10(value) - first) / (last - first)

    parts = [f'<rect x="{_LEFT}" y="10" width="{right - _LEFT}" height="{bottom - 10}" fill="none" stroke="#999"/>']
    for power in range(xs[0], xs[1] + 1):
        x = place(10.0**power, xs, _LEFT, right)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(ys[0], ys[1] + 1):
        y = place(10.0**power, ys, bottom, 10)
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for dtype, peak in summary["peak_gmacs"].items():
        y = place(peak, ys, bottom, 10)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#c00" stroke-dasharray="4"/>')
        parts.append(f'<text x="{right + 4}" y="{y + 4:.1f}" fill="#c00">{escape(dtype)}</text>')
    for node, intensity in zip(nodes, intensities, strict=True):
        x, y = place(intensity, xs, _LEFT, right), place(node["gmacs"], ys, bottom, 10)
        radius = 3 + 40 * math.sqrt(node["share"])  # the area tells the time
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colours[node["kernel"]]}" fill-opacity="0.6">'
            f"{_tooltip(node)}</circle>"
        )
    parts.append(f'<text x="{_WIDTH / 2}" y="{_ROOFLINE - 6}" text-anchor="middle">MAC per byte moved</text>')
    parts.append(f'<text x="{_LEFT + 6}" y="26">GMAC/s</text>')
    svg = f'<svg viewBox="0 0 {_WIDTH} {_ROOFLINE}" role="img">{"".join(parts)}</svg>'
    return f"<h2>Speed by arithmetic intensity</h2>\n{svg}"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten that enclose the values."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return first, max(last, first + 1)


def _table(rows: Sequence[Mapping[str, Any]], columns: Columns, colours: Mapping[str, str]) -> str:
    kinds = [
        'class="layer"' if key == "layer" else "" if key in ("op", "kernel") else 'class="number"'
        for key, *_ in columns
    ]
    head = "".join(f"<th {kind}>{escape(title)}</th>" for kind, (_, title, _) in zip(kinds, columns, strict=True))
    largest = max((row["share"] for row in rows), default=0) or 1.0
    lines = []
    for row in rows:
        bar = (
            f'<span class="bar" style="width:{120 * row["share"] / largest:.0f}px;'
            f'background:{_colour(row["kernel"], colours)}"></span>'
        )
        texts = "".join(
            f"<td {kind}>{escape(text)}</td>" for kind, text in zip(kinds, cells(row, columns), strict=True)
        )
        lines.append(f"<tr><td>{bar}</td>{texts}</tr>")
    return f"<table>\n<tr><th></th>{head}</tr>\n" + "\n".join(lines) + "\n</table>"
