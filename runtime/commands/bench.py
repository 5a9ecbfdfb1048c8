"""`python -m runtime bench`: latency of whole calls."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import runtime
from runtime.commands import arrays

WARM_UP = 3
PERCENTILES = (10, 50, 90, 99)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arrays.add_input_argument(parser)
    arrays.add_threads_argument(parser)
    parser.add_argument("--runs", type=arrays.runs_argument, default=50, metavar="N", help="timed calls (default 50)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    model = runtime.load(options.model, options.threads)
    loaded = time.perf_counter()
    inputs = arrays.gather(options.input, model.inputs)
    begin = time.perf_counter()
    model(inputs)
    first = time.perf_counter()
    for _ in range(WARM_UP):
        model(inputs)
    times = []
    for _ in range(options.runs):
        before = time.perf_counter()
        model(inputs)
        times.append(1e3 * (time.perf_counter() - before))
    result = {
        "model": options.model,
        "threads": options.threads,
        "shapes": {name: list(a.shape) for name, a in inputs.items()},
        "load_ms": 1e3 * (loaded - start),
        "first_ms": 1e3 * (first - begin),
        "runs": options.runs,
        "median_ms": float(np.median(times)),
        **{f"p{p}_ms": float(np.percentile(times, p)) for p in PERCENTILES},
        "min_ms": min(times),
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{options.model}: {', '.join(f'{n} {tuple(s)}' for n, s in result['shapes'].items())}")
    print(f"load {result['load_ms']:.1f} ms, first call {result['first_ms']:.1f} ms")
    print(
        f"median {result['median_ms']:.3f} ms over {options.runs} runs, "
        + ", ".join(f"p{p} {result[f'p{p}_ms']:.3f}" for p in PERCENTILES)
    )
