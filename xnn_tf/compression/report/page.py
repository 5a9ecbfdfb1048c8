"""The report as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any

from xnn_tf.compression.report import charts
from xnn_tf.compression.report.ledger import KINDS

_STEPS = ("float32", "neurons", "synapses", "quantization", "transform", "coding")

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$title</title>
<style>
body { font: 14px sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; word-break: break-all; }
svg { max-width: 100%; height: auto; font: 11px sans-serif; }
.grid { stroke: #eee; } .limit { stroke: #c33; stroke-dasharray: 5 3; }
.before { fill: #bcd; } .after { fill: #c33; }
.charts { display: flex; flex-wrap: wrap; gap: 1em; } figure { margin: 0; } figcaption { font-size: 12px; }
i { display: inline-block; width: 10px; height: 10px; margin: 0 4px 0 10px; }
</style>
</head>
<body>
<h1>$title</h1>
$summary
<h2>Bytes against $metric, and stage after stage</h2>
<div class="charts">$curve $stages</div>
$table_of_stages
<h2>Where the bytes are</h2>
<p>$legend</p>
$ledger_chart
$ledger
<h2>Step by step</h2>
<p>Bytes of each layer after neuron pruning, synapse pruning, quantization, network transform and entropy coding.</p>
$steps
<h2>Layers</h2>
$layers
$sensitivity
<h2>Weights before and after</h2>
<p>Blue: of the base model. Red: of the compressed one, zeros left out; each to its own scale.</p>
<div class="charts">$histograms</div>
</body>
</html>
""")


def render(data: dict[str, Any]) -> str:
    """The page for the data of a report. All names in it are escaped."""
    metric = data["metric"]
    return _PAGE.substitute(
        title=escape(f"{data['model']} compressed by {data['recipe']}"),
        metric=escape(metric),
        summary=_summary(data),
        curve=_curve(data),
        stages=_stages_chart(data),
        table_of_stages=_stages(data),
        legend=charts.legend([*KINDS, "header"]),
        ledger_chart=charts.stacked(_ledger_rows(data), [*KINDS, "header"]),
        ledger=_ledger(data),
        steps=_table(("layer", *_STEPS), _with_total(data["ledger"]["steps"], _STEPS)),
        layers=_layers(data),
        sensitivity=_sensitivity(data),
        histograms="".join(_histogram(name, each) for name, each in data["histograms"].items()),
    )


def _summary(data: dict[str, Any]) -> str:
    base, result, latency = data["base"], data["result"], data["latency"]
    goal = data["goal"]
    asked = (
        f"at most {goal['target_bytes']:,} bytes"
        if goal["max_drop"] is None
        else f"{data['metric']} at least {goal['least_score']:.4f}"
    )
    lines = [
        f"{base['bytes']:,} bytes of float32 parameters became a file of {result['bytes']:,} bytes: "
        f"{result['ratio']:.1f} times smaller.",
        f"{data['metric']} on the validation data: {base['score']:.4f} before, {result['score']:.4f} after "
        f"({result['score'] - base['score']:+.4f}). Asked for: {asked}; {'met' if result['met'] else 'not met'}.",
        f"Latency of one sample on {latency['threads']} thread, median: {latency['base_ms']:.3f} ms before, "
        f"{latency['ms']:.3f} ms after ({result['conversion']}).",
    ]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


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


def _stages(data: dict[str, Any]) -> str:
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
    return _table(("stage", "epochs", "seconds", data["metric"], "bytes"), rows)


def _ledger_rows(data: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    rows = [(row["layer"], {kind: row[kind] for kind in KINDS}) for row in data["ledger"]["layers"]]
    return [*rows, ("(header)", {"header": data["ledger"]["total"]["header"]})]


def _ledger(data: dict[str, Any]) -> str:
    columns = (*KINDS, "header", "total")
    rows = [row | {"header": 0} for row in data["ledger"]["layers"]]
    header = data["ledger"]["total"]["header"]
    rows.append({"layer": "(header)", "header": header, "total": header})
    rows.append({"layer": "total"} | data["ledger"]["total"])
    return _table(("layer", *columns), [(row["layer"], *(f"{row.get(c, 0):,}" for c in columns)) for row in rows])


def _with_total(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[tuple]:
    total = {"layer": "total"} | {column: sum(row[column] for row in rows) for column in columns}
    return [(row["layer"], *(f"{row[column]:,}" for column in columns)) for row in (*rows, total)]


def _layers(data: dict[str, Any]) -> str:
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
    head = ("layer", "parameters", "kept", "zeros", "different values", "bytes", "bits per parameter")
    return _table(head, rows)


def _sensitivity(data: dict[str, Any]) -> str:
    curves = data["sensitivity"]
    if not curves:
        return ""
    chart = charts.chart({n: [(s, d) for s, d in c] for n, c in curves.items()}, "zeros of one layer", "divergence")
    return f"<h2>Sensitivity</h2><p>{charts.legend(list(curves))}</p>{chart}"


def _histogram(name: str, each: dict[str, Any]) -> str:
    caption = f"{name}: ±{each['limit']:.3g}, {each['zeros']:,} zeros"
    return f"<figure>{charts.bars(each['before'], each['after'])}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"
