"""The report of a compression: plain data first, drawn from it the page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schema.command_line import replacing
from schema.ledger import KINDS, ledger
from schema.version import __version__
from xnn_tf.compression.coded_size import values
from xnn_tf.compression.goal import Goal
from xnn_tf.compression.report import page
from xnn_tf.compression.report.layer_names import layer_of
from xnn_tf.compression.report.measure import by_step, histogram, latency_ms
from xnn_tf.compression.run import BASE, Candidate, Run
from xnn_tf.keras_compat import sublayers, weights_of
from xnn_tf.kernels import find_kernels

SCHEMA = "xnn-compression/1"
"""Fields may be added under the same number; docs/compressing.md lists them."""


@dataclass(frozen=True)
class Report:
    """What a compression did. `data` is what `report.json` holds."""

    data: dict[str, Any]

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1)

    def to_html(self) -> str:
        """One page that needs no other file and no network."""
        return page.render(self.data)

    def save(self, folder: Path) -> Path:
        """Writes `report.json` and `report.html`, and returns the latter's path."""
        for name, text in (("report.json", self.to_json()), ("report.html", self.to_html())):
            with replacing(folder / name) as file:
                file.write(text.encode())
        return folder / "report.html"

    def __str__(self) -> str:
        base, result = self.data["base"], self.data["result"]
        sizes = f"{base['bytes']:,} -> {result['bytes']:,} bytes ({result['ratio']:.1f} x)"
        return f"{self.data['model']}: {sizes}, {self.data['metric']} {base['score']:.4f} -> {result['score']:.4f}"


def make_report(run: Run, goal: Goal, best: Candidate, model: Any, xnn: bytes) -> Report:
    """Gathers and measures.

    Args:
        run: that is over.
        goal: of it.
        best: the candidate that was chosen.
        model: with its weights.
        xnn: its file.
    """
    context = run.context
    base_step = run.state.find(BASE)
    assert base_step is not None
    x = context.validation.first()[0]
    book = ledger(xnn)
    before = weights_by_layer(context.base)
    after: dict[str, list[np.ndarray]] = {}
    for path, arrays in weights_by_layer(model).items():  # quantize-aware layers have wrappers around them
        after.setdefault(layer_of(path, list(before)) or path, []).extend(arrays)
    latency = {"base_ms": latency_ms(run.state.xnn(base_step), x), "ms": latency_ms(xnn, x), "threads": 1, "batch": 1}
    return Report(
        {
            "schema": SCHEMA,
            "producer": f"xnn {__version__}",
            "model": context.base.name,
            "recipe": run.recipe.name,
            "metric": context.task.metric_name,
            "goal": {"max_drop": goal.max_drop, "target_bytes": goal.target_bytes, "least_score": goal.least_score},
            "base": {"bytes": goal.base_bytes, "file_bytes": base_step.values["bytes"], "score": goal.base_score},
            "result": {
                "bytes": len(xnn),
                "ratio": goal.base_bytes / len(xnn),
                "score": best.score,
                "conversion": best.conversion,
                "level": best.level,
                "met": goal.met(best),
            },
            "stages": _stages(run),
            "candidates": [
                {key: getattr(c, key) for key in ("step", "level", "conversion", "bytes", "score")}
                | {"met": goal.met(c)}
                for c in run.candidates
            ],
            "ledger": {
                "layers": [{"layer": layer.layer} | layer.bytes | {"total": layer.total} for layer in book.layers],
                "total": {kind: book.of_kind(kind) for kind in KINDS} | {"header": book.header, "total": book.total},
                "steps": by_step(before, after, book),
            },
            "layers": _layers(before, after, book),
            "sensitivity": context.found.get("sensitivity", {}).get("curves", {}),
            "histograms": _histograms(context.base, model, list(before)),
            "latency": latency,
        }
    )


def weights_by_layer(model: Any) -> dict[str, list[np.ndarray]]:
    """The weights of each layer that has some, by its path; shared ones at the first."""
    found: dict[str, list[np.ndarray]] = {}
    seen: set[int] = set()

    def visit(layer: Any, path: str) -> None:
        children = list(sublayers(layer))
        inner = {id(w) for child in children for w in weights_of(child)}
        own = [w for w in weights_of(layer) if id(w) not in inner and id(w) not in seen]
        seen.update(id(w) for w in own)
        arrays = [np.asarray(w.numpy(), np.float32) for w in own if "seed" not in w.name]
        if arrays:
            found[path or layer.name] = arrays
        for child in children:
            visit(child, f"{path}/{child.name}" if path else child.name)

    visit(model, "")
    return found


def _stages(run: Run) -> list[dict[str, Any]]:
    shown = ("epochs", "score", "target_bytes", "conversion", "bytes", "logs", "sparsities")
    return [
        {"step": step.name, "seconds": step.seconds} | {key: step.values[key] for key in shown if key in step.values}
        for step in run.state.steps
    ]


def _layers(before: dict, after: dict, book: Any) -> list[dict[str, Any]]:
    """Sparsity and bits of each layer's kernels, as they are in the file."""
    owners = {layer.layer: layer_of(layer.layer, list(before)) for layer in book.layers}
    rows = []
    for path, weights in before.items():
        kernels = [w for w in after.get(path, []) if w.ndim > 1]
        size, zeros = sum(w.size for w in kernels), sum(int(np.count_nonzero(w == 0)) for w in kernels)
        mine = [layer for layer in book.layers if owners[layer.layer] == path]
        stored = sum(layer.total for layer in mine)
        rows.append(
            {
                "layer": path,
                "parameters": sum(w.size for w in weights),
                "kept_parameters": sum(w.size for w in after.get(path, [])),
                "sparsity": zeros / size if size else 0.0,
                "values": max((layer.distinct for layer in mine), default=0),
                "bytes": stored,
                "bits_per_parameter": 8 * stored / max(1, sum(w.size for w in weights)),
            }
        )
    return rows


def _histograms(base: Any, model: Any, paths: list[str]) -> dict[str, Any]:
    """Of each kernel of the base model; of those that are smaller now, or in a wrapper, likewise."""
    after = {f"{layer_of(k.path, paths) or k.path}/{k.weight}": values(k) for k in find_kernels(model)}
    return {
        kernel.name: histogram(values(kernel), after[kernel.name])
        for kernel in find_kernels(base)
        if kernel.name in after
    }
