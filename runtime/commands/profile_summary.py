"""The numbers of a profile as rows and columns, for JSON, terminal and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.native.target import available_tiers, host_target
from runtime.native.worker_pool import default_threads
from runtime.profiling import PRODUCT, NodeProfile, Profile


def summarize(model: str, threads: int | None, measured: Profile) -> dict[str, Any]:
    """What --json prints. Numbers that a node has not are None."""
    total = sum(node.microseconds for node in measured.nodes) or 1.0
    target = host_target()
    return {
        "model": model,
        "threads": default_threads() if threads is None else threads,
        "cpu": target.cpu,
        "isa": available_tiers(target)[0],
        "call_us": measured.call,
        "sum_us": total,
        "overhead_us": measured.overhead,
        "arena_bytes": measured.arena_bytes,
        "product": list(PRODUCT),
        "peak_gmacs": measured.peaks,
        "kernels": _kernels(measured.nodes, total),
        "nodes": [
            {
                "layer": node.layer,
                "op": node.op,
                "kernel": node.kernel,
                "median_us": node.microseconds,
                "share": node.microseconds / total,
                "macs": node.macs,
                "gmacs": node.gmacs,
                "share_of_peak": node.share_of_peak,
                "bytes": node.bytes_moved,
                "gigabytes": node.gigabytes,
            }
            for node in measured.nodes
        ],
    }


def _kernels(nodes: Sequence[NodeProfile], total: float) -> list[dict[str, Any]]:
    """The nodes of each kernel together, those that take longest first."""
    groups: dict[str, list[NodeProfile]] = {}
    for node in nodes:
        groups.setdefault(node.kernel if node.kernel != "reference" else f"reference {node.op}", []).append(node)
    rows = []
    for kernel, group in groups.items():
        # As if it were one node; one kernel multiplies in one dtype.
        macs, microseconds = sum(n.macs for n in group), sum(n.microseconds for n in group)
        moved = None if any(n.bytes_moved is None for n in group) else sum(n.bytes_moved for n in group)
        whole = NodeProfile("", "", kernel, microseconds, macs, moved, group[0].peak)
        rows.append(
            {
                "kernel": kernel,
                "nodes": len(group),
                "us": microseconds,
                "share": microseconds / total,
                "gmacs": whole.gmacs,
                "share_of_peak": whole.share_of_peak,
                "gigabytes": whole.gigabytes,
            }
        )
    return sorted(rows, key=lambda row: -row["us"])


Columns = Sequence[tuple[str, str, Callable[[Any], str]]]
"""Key, heading and how a value is written."""

_NUMBERS: Columns = [
    ("share", "share", lambda v: f"{100 * v:.1f}%"),
    ("gmacs", "GMAC/s", lambda v: f"{v:.1f}"),
    ("share_of_peak", "of peak", lambda v: f"{100 * v:.0f}%"),
    ("gigabytes", "GB/s", lambda v: f"{v:.2f}"),
]
NODE_COLUMNS: Columns = [
    ("median_us", "us", lambda v: f"{v:.1f}"),
    *_NUMBERS,
    ("bytes", "bytes", str),
    ("op", "op", str),
    ("kernel", "kernel", str),
    ("layer", "layer", str),
]
KERNEL_COLUMNS: Columns = [
    ("us", "us", lambda v: f"{v:.1f}"),
    *_NUMBERS,
    ("nodes", "nodes", str),
    ("kernel", "kernel", str),
]


def cells(row: Mapping[str, Any], columns: Columns) -> list[str]:
    """The row's values as text, "-" where there is none."""
    return ["-" if row[key] is None else write(row[key]) for key, _, write in columns]


def heading(summary: Mapping[str, Any]) -> list[str]:
    """What was measured, in sentences."""
    rows, depth, columns = summary["product"]
    peaks = ", ".join(f"{dtype} {peak:.0f} GMAC/s" for dtype, peak in summary["peak_gmacs"].items())
    threads = f"{summary['threads']} thread{'s' * (summary['threads'] > 1)}"
    lines = [
        f"kernels for {summary['cpu']}, tier {summary['isa']}; {threads}: "
        f"whole call {summary['call_us'] / 1e3:.3f} ms, sum of {len(summary['nodes'])} nodes "
        f"{summary['sum_us'] / 1e3:.3f} ms, arena {summary['arena_bytes']} bytes",
        f"medians; {summary['overhead_us']:.1f} us that it takes to start a node by itself are taken off each",
    ]
    if peaks:
        lines.append(f"peak: a product of {rows} x {depth} x {columns} as a graph of its own reaches {peaks}")
    return lines
