"""Charts as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 560, 240  # pixels
_LEFT, _RIGHT, _TOP, _BELOW = 64, 12, 12, 38  # room around the plot
_GOLDEN_ANGLE = 137.508  # degrees: neighbours of any number of hues made with it differ

Points = Sequence[tuple[float, float]]


def colour(index: int) -> str:
    return f"hsl({index * _GOLDEN_ANGLE % 360:.0f} 60% 48%)"


def _span(numbers: Sequence[float]) -> tuple[float, float]:
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 0.5
    return low - margin, high + margin


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next((factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count), 10)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def chart(
    series: Mapping[str, Points],
    x_label: str,
    y_label: str,
    lines: bool = True,
    limits: Mapping[str, float] | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Points of several series against each other.

    Args:
        series: by name, shown when the pointer rests on a point.
        x_label, y_label: of the axes.
        lines: join the points of a series.
        limits: horizontal lines, by their names.
        notes: for each series, what to show for each point.
    """
    everything = [point for points in series.values() for point in points]
    left, right = _span([x for x, _ in everything])
    low, high = _span([y for _, y in everything] + list((limits or {}).values()))

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (x - left) / (right - left) * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BELOW - (y - low) / (high - low) * (HEIGHT - _TOP - _BELOW),
        )

    parts = [_axes(left, right, low, high, at, x_label, y_label)]
    for name, value in (limits or {}).items():
        (x0, y), (x1, _) = at(left, value), at(right, value)
        parts.append(f'<line x1="{x0:.1f}" y1="{y:.1f}" x2="{x1:.1f}" y2="{y:.1f}" class="limit"/>')
        parts.append(f'<text x="{x1 - 4:.1f}" y="{y - 4:.1f}" text-anchor="end">{escape(name)}</text>')
    for index, (name, points) in enumerate(series.items()):
        places = [at(x, y) for x, y in points]
        if lines and len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            title = f"<title>{escape(name)}</title>"
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour(index)}">{title}</polyline>')
        for number, (x, y) in enumerate(places):
            note = (notes or {}).get(name, [name] * len(places))[number]
            title = f"<title>{escape(note)}</title>"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour(index)}">{title}</circle>')
    return _svg(parts)


def _axes(left, right, low, high, at, x_label: str, y_label: str) -> str:
    parts = []
    for tick in _ticks(left, right):
        x, y = at(tick, low)
        parts.append(f'<text x="{x:.1f}" y="{y + 14:.1f}" text-anchor="middle">{tick:,.6g}</text>')
    for tick in _ticks(low, high):
        (x, y), (end, _) = at(left, tick), at(right, tick)
        parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:,.6g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text transform="translate(12 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
    )
    return "".join(parts)


def bars(before: Sequence[int], after: Sequence[int], width: int = 260, height: int = 90) -> str:
    """Two histograms over each other, each to its own scale: the first filled, the second as lines."""
    step = width / len(before)
    parts = []
    for counts, kind in ((before, "before"), (after, "after")):
        most = max(max(counts), 1)
        for index, count in enumerate(counts):
            if count:
                tall = count / most * (height - 4)
                thin = step if kind == "before" else step / 3
                x = index * step + (step - thin) / 2
                parts.append(
                    f'<rect x="{x:.1f}" y="{height - tall:.1f}" width="{thin:.1f}" height="{tall:.1f}" class="{kind}"/>'
                )
    return f'<svg viewBox="0 0 {width} {height}" width="{width}">{"".join(parts)}</svg>'


def stacked(rows: Sequence[tuple[str, Mapping[str, float]]], kinds: Sequence[str]) -> str:
    """A bar for each row, cut by kind."""
    most = max((sum(parts.values()) for _, parts in rows), default=1) or 1
    row_height, names = 20, 170
    out = []
    for number, (name, parts) in enumerate(rows):
        y = number * row_height
        out.append(f'<text x="{names - 6}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        x = float(names)
        for index, kind in enumerate(kinds):
            wide = parts.get(kind, 0) / most * (2 * WIDTH - names - 90)
            if wide > 0:
                note = escape(f"{kind}: {parts[kind]:,} bytes")
                place = f'x="{x:.1f}" y="{y + 2}" width="{wide:.1f}" height="{row_height - 5}"'
                out.append(f'<rect {place} fill="{colour(index)}"><title>{note}</title></rect>')
                x += wide
        out.append(f'<text x="{x + 5:.1f}" y="{y + 14}">{sum(parts.values()):,.0f}</text>')
    return f'<svg viewBox="0 0 {2 * WIDTH} {row_height * len(rows) + 4}">{"".join(out)}</svg>'


def legend(names: Sequence[str]) -> str:
    return " ".join(
        f'<span><i style="background:{colour(index)}"></i>{escape(name)}</span>' for index, name in enumerate(names)
    )


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">{"".join(parts)}</svg>'
