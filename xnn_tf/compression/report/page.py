"""The report as one HTML page that needs no other file: `page.html.jinja`, and what is shown in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from schema.ledger import KINDS
from xnn_tf.compression.report import charts

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""(head, rows)"""

_STEPS = ("float32", "neurons", "synapses", "quantization", "transform", "coding")


@cache
def _template() -> jinja2.Template:
    source = Path(__file__).with_name("page.html.jinja").read_text("utf-8")
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(source)


def render(data: dict[str, Any]) -> str:
    """The page for the data of a report. All names in it are escaped: texts by the template, and in charts by `charts`,
    whose results alone are taken as markup.
    """
    kinds = [*KINDS, "header"]
    curves = data["sensitivity"]
    return _template().render(
        title=f"{data['model']} compressed by {data['recipe']}",
        metric=data["metric"],
        summary=_summary(data),
        curve=Markup(_curve(data)),
        stages_chart=Markup(_stages_chart(data)),
        stages=_stages(data),
        ledger_legend=Markup(charts.legend(kinds)),
        ledger_chart=Markup(charts.stacked(_ledger_rows(data), kinds)),
        ledger=_ledger(data),
        steps=(("layer", *_STEPS), _with_total(data["ledger"]["steps"], _STEPS)),
        layers=_layers(data),
        sensitivity_legend=Markup(charts.legend(list(curves))),
        sensitivity_chart=Markup(_sensitivity(curves)) if curves else "",
        histograms=[_histogram(name, each) for name, each in data["histograms"].items()],
    )


def _summary(data: dict[str, Any]) -> list[str]:
    base, result, latency = data["base"], data["result"], data["latency"]
    goal = data["goal"]
    asked = (
        f"at most {goal['target_bytes']:,} bytes"
        if goal["max_drop"] is None
        else f"{data['metric']} at least {goal['least_score']:.4f}"
    )
    return [
        f"{base['bytes']:,} bytes of float32 parameters became a file of {result['bytes']:,} bytes: "
        f"{result['ratio']:.1f} times smaller.",
        f"{data['metric']} on the validation data: {base['score']:.4f} before, {result['score']:.4f} after "
        f"({result['score'] - base['score']:+.4f}). Asked for: {asked}; {'met' if result['met'] else 'not met'}.",
        f"Latency of one sample on {latency['threads']} thread, median: {latency['base_ms']:.3f} ms before, "
        f"{latency['ms']:.3f} ms after ({result['conversion']}).",
    ]


def _curve(data: dict[str, Any]) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    notes: dict[str, list[str]] = {}
    for file in data["candidates"]:
        if file["level"] is None and file["conversion"] == "float32":
            continue  # so large that the others would be one point
        series.setdefault(file["conversion"], []).append((file["bytes"], file["score"]))
        notes.setdefault(file["conversion"], []).append(f"{file['step']}: {file['bytes']:,} bytes, {file['score']:.4f}")
    limits = {"base": data["base"]["score"]}
    if data["goal"]["least_score"] is not None:
        limits["goal"] = data["goal"]["least_score"]
    if not series:
        return ""
    return charts.chart(series, "bytes of the file", data["metric"], False, limits, notes)


def _stages_chart(data: dict[str, Any]) -> str:
    scored = [stage for stage in data["stages"] if "score" in stage]
    points = [(float(index), stage["score"]) for index, stage in enumerate(scored)]
    notes = [f"{stage['step']}: {stage['score']:.4f}" for stage in scored]
    return charts.chart({"score": points}, "stage", data["metric"], True, None, {"score": notes})


def _stages(data: dict[str, Any]) -> Table:
    rows = [
        (
            stage["step"],
            stage.get("epochs", ""),
            f"{stage['seconds']:.1f}",
            f"{stage['score']:.4f}" if "score" in stage else "",
            f"{stage['bytes']:,}" if "bytes" in stage else "",
        )
        for stage in data["stages"]
    ]
    return ("stage", "epochs", "seconds", data["metric"], "bytes"), rows


def _ledger_rows(data: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    rows = [(row["layer"], {kind: row[kind] for kind in KINDS}) for row in data["ledger"]["layers"]]
    return [*rows, ("(header)", {"header": data["ledger"]["total"]["header"]})]


def _ledger(data: dict[str, Any]) -> Table:
    columns = (*KINDS, "header", "total")
    rows = [row | {"header": 0} for row in data["ledger"]["layers"]]
    header = data["ledger"]["total"]["header"]
    rows.append({"layer": "(header)", "header": header, "total": header})
    rows.append({"layer": "total"} | data["ledger"]["total"])
    return ("layer", *columns), [(row["layer"], *(f"{row.get(c, 0):,}" for c in columns)) for row in rows]


def _with_total(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[tuple]:
    total = {"layer": "total"} | {column: sum(row[column] for row in rows) for column in columns}
    return [(row["layer"], *(f"{row[column]:,}" for column in columns)) for row in (*rows, total)]


def _layers(data: dict[str, Any]) -> Table:
    rows = [
        (
            row["layer"],
            f"{row['parameters']:,}",
            f"{row['kept_parameters']:,}",
            f"{100 * row['sparsity']:.1f} %",
            f"{row['values']:,}",
            f"{row['bytes']:,}",
            f"{row['bits_per_parameter']:.2f}",
        )
        for row in data["layers"]
    ]
    return ("layer", "parameters", "kept", "zeros", "different values", "bytes", "bits per parameter"), rows


def _sensitivity(curves: dict[str, Any]) -> str:
    series = {name: [(sparsity, damage) for sparsity, damage in curve] for name, curve in curves.items()}
    return charts.chart(series, "zeros of one layer", "divergence")


def _histogram(name: str, each: dict[str, Any]) -> dict[str, str]:
    caption = f"{name}: ±{each['limit']:.3g}, {each['zeros']:,} zeros"
    return {"bars": Markup(charts.bars(each["before"], each["after"])), "caption": caption}
