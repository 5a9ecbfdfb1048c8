"""What quantization did to each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from schema.graph import Tensor


@dataclass(frozen=True)
class Kept:
    """A constant that stays float32, and why."""

    tensor: Tensor
    reason: str


@dataclass(frozen=True)
class Row:
    """One node that computes real numbers.

    dtype: what it computes in. weight_scale: (smallest, largest) over the output channels. clusters: distinct values
    of a kernel that is clustered. output: (lowest, highest) real value that its output represents. reason: why it, or
    what it stores, stays float32.
    """

    layer: str
    op: str
    dtype: str
    weight_scale: tuple[float, float] | None = None
    clusters: int | None = None
    output: tuple[float, float] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """method: as of `Options`. observer: how ranges were taken, None where none were. samples: of calibration data.
    notes: what else happened, one line each.
    """

    method: str
    observer: str | None = None
    samples: int = 0
    rows: Sequence[Row] = ()
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"{self.method}"
        if self.observer:
            head += f", {self.samples} calibration samples, ranges by {self.observer}"
        table: list[tuple[str, ...]] = [("layer", "op", "computes in", "weight scales", "output range", "remarks")]
        table += [_cells(row) for row in self.rows]
        widths = [max(len(cells[i]) for cells in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in table
        ]
        return "\n".join([head, *lines, *self.notes])


def _cells(row: Row) -> tuple[str, ...]:
    scale = "" if row.weight_scale is None else f"{row.weight_scale[0]:.3g} to {row.weight_scale[1]:.3g}"
    output = "" if row.output is None else f"{row.output[0]:.4g} to {row.output[1]:.4g}"
    remarks = [row.reason] if row.reason else []
    if row.clusters is not None:
        remarks.append(f"{row.clusters} distinct weights kept")
    return row.layer, row.op, row.dtype, scale, output, "; ".join(remarks)
