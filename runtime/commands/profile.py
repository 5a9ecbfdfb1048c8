"""`python -m runtime profile`: the time of each node by itself."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import runtime
from runtime.commands import arrays
from runtime.plan import Plan
from runtime.signature import bind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arrays.add_input_argument(parser)
    arrays.add_threads_argument(parser)
    parser.add_argument("--runs", type=arrays.runs_argument, default=20, metavar="N", help="timed calls (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    model = runtime.load(options.model, options.threads)
    inputs = [*bind(model.graph, [arrays.gather(options.input, model.inputs)]), *model.state.values()]
    plan = model.plan(inputs)
    rows = measure(plan, inputs, options.runs, options.threads)
    total = sum(row["median_us"] for row in rows) or 1.0
    if options.json:
        summary = {"model": options.model, "threads": options.threads, "arena_bytes": plan.arena.nbytes, "nodes": rows}
        print(json.dumps(summary))
        return
    width = max([len(row["layer"]) for row in rows] + [5])
    print(f"{'layer':{width}}  {'op':22}  {'kernel':28}  {'median us':>10}  {'share':>6}")
    for row in rows:
        share = 100 * row["median_us"] / total
        print(f"{row['layer']:{width}}  {row['op']:22}  {row['kernel']:28}  {row['median_us']:10.1f}  {share:5.1f}%")
    print(f"sum {total / 1e3:.3f} ms over {len(rows)} nodes, arena {plan.arena.nbytes} bytes")


def measure(plan: Plan, inputs: list[np.ndarray], runs: int, threads: int | None) -> list[dict]:
    """For each node that runs: layer, op, kernel and the median of its times. The first run is left out."""
    parts = plan.parts()
    times = np.zeros((runs + 1, len(parts)))
    for turn in range(runs + 1):
        plan.write_inputs(inputs)
        for index, part in enumerate(parts):
            start = time.perf_counter()
            part.run(threads)
            times[turn, index] = 1e6 * (time.perf_counter() - start)
    medians = np.median(times[1:], axis=0)
    return [
        {"layer": part.node.name, "op": part.node.op, "kernel": part.kernel, "median_us": float(median)}
        for part, median in zip(parts, medians, strict=True)
    ]
