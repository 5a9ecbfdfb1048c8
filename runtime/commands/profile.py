"""`python -m runtime profile`: time, arithmetic and memory traffic of each node, beside the machine's peak."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import runtime
from runtime.commands import arrays, profile_page
from runtime.commands.profile_summary import KERNEL_COLUMNS, NODE_COLUMNS, Columns, cells, heading, summarize
from runtime.profiling import profile
from runtime.signature import bind
from schema.command_line import replacing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arrays.add_input_argument(parser)
    arrays.add_threads_argument(parser)
    parser.add_argument("--runs", type=arrays.runs_argument, default=20, metavar="N", help="timed calls (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--html", type=Path, metavar="PAGE.html", help="draw it, as a page that needs no other file")


def run(options: argparse.Namespace) -> None:
    model = runtime.load(options.model, options.threads)
    inputs = [*bind(model.graph, [arrays.gather(options.input, model.inputs)]), *model.state.values()]
    summary = summarize(options.model, options.threads, profile(model, inputs, options.runs, options.threads))
    if options.html is not None:
        page = profile_page.render(summary).encode()
        with replacing(options.html) as file:
            file.write(page)
    if options.json:
        print(json.dumps(summary))
        return
    _print_table(summary["nodes"], NODE_COLUMNS)
    print()
    _print_table(summary["kernels"], KERNEL_COLUMNS)
    print()
    print("\n".join(heading(summary)))


def _print_table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> None:
    lines = [[title for _, title, _ in columns], *(cells(row, columns) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        parts = [
            text.ljust(width) if write is str else text.rjust(width)
            for text, width, (_, _, write) in zip(line, widths, columns, strict=True)
        ]
        print("  ".join(parts).rstrip())
