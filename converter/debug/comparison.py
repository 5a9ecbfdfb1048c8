"""What a comparison of a float model with its quantized form found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from converter.debug.advice import Advice
from converter.tables import table

INHERITED = 3.0
"""dB by which a node's own error has to be below the accumulated one to be called inherited: it is then less than half
of the noise.
"""
HEAD = ("layer", "op", "dtype", "SNR dB", "own SNR dB", "cosine", "max error", "in steps", "own, in steps", "error is")


@dataclass(frozen=True)
class Row:
    """One node, or one quantized input of the model, on all calibration data.

    layer: its name in the source model. dtype: what its output is in the quantized form. snr: signal to noise in dB,
    10 log10(sum x^2 / sum e^2), of its float output against what it is in the whole quantized model; cosine and
    max_error (absolute) of the same. own_*: of the error that the node makes by itself, fed with what the float model
    feeds it, quantized; None for a node that is not quantized. *_steps: in steps of its output's scale. moves: whether
    it only moves or compares integers, so that its own error is that of its input.
    """

    layer: str
    op: str
    dtype: str
    snr: float
    cosine: float
    max_error: float
    max_error_steps: float | None = None
    own_snr: float | None = None
    own_cosine: float | None = None
    own_max_error: float | None = None
    own_max_error_steps: float | None = None
    moves: bool = False

    @property
    def inherited(self) -> bool:
        """Whether most of its noise comes from the nodes before it."""
        return self.own_snr is None or self.moves or self.own_snr > self.snr + INHERITED


@dataclass(frozen=True)
class Comparison:
    """rows: worst accumulated SNR first. outputs: SNR in dB by name. advice: None where it was not asked for."""

    source: str
    method: str
    samples: int
    rows: Sequence[Row]
    outputs: dict[str, float]
    advice: Advice | None = field(default=None, repr=False)

    @property
    def snr(self) -> float:
        """Of the worst output, in dB."""
        return min(self.outputs.values(), default=math.inf)

    def by_own_error(self) -> list[Row]:
        """The rows of quantized nodes, the worst own error first."""
        return sorted((row for row in self.rows if row.own_snr is not None), key=lambda row: row.own_snr)

    def candidates(self) -> list[str]:
        """Names of the layers that make an error of their own, the largest first."""
        return list(dict.fromkeys(row.layer for row in self.by_own_error() if not row.moves and row.op != "QUANTIZE"))

    def text(self, top: int | None = None) -> str:
        """For people: a line for all nodes of a layer that have the same op, with the worst of each figure.

        top: how many lines, None for all.
        """
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.layer, row.op), []).append(row)
        shown = list(groups.values())[:top]
        cells = [HEAD, *(_cells(rows) for rows in shown)]
        outputs = ", ".join(f"'{name}' {decibels(snr)}" for name, snr in self.outputs.items())
        parts = [
            f"{self.source}: {self.method} against float, {self.samples} samples; SNR in dB: {outputs}",
            table(cells, right=range(3, 9)),
        ]
        if len(shown) < len(groups):
            parts[-1] += f"\n({len(groups) - len(shown)} better ones left out)"
        if self.advice is not None:
            parts.append(str(self.advice))
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; an infinite SNR (nothing differs, or no signal) is None."""
        return _finite(
            {
                "source": self.source,
                "quantize": self.method,
                "samples": self.samples,
                "outputs": self.outputs,
                "layers": [{**asdict(row), "inherited": row.inherited} for row in self.rows],
                "advice": None if self.advice is None else self.advice.to_json(),
            }
        )


def decibels(snr: float) -> str:
    return "exact" if snr == math.inf else f"{snr:.1f}"


def _cells(rows: Sequence[Row]) -> tuple[str, ...]:
    own = [row.own_snr for row in rows if row.own_snr is not None]
    steps = [row.max_error_steps for row in rows if row.max_error_steps is not None]
    own_steps = [row.own_max_error_steps for row in rows if row.own_max_error_steps is not None]
    first = rows[0]
    return (
        first.layer,
        first.op if len(rows) == 1 else f"{first.op} x{len(rows)}",
        "/".join(dict.fromkeys(row.dtype for row in rows)),
        decibels(first.snr),
        decibels(min(own)) if own else "",
        f"{min(row.cosine for row in rows):.5f}",
        f"{max(row.max_error for row in rows):.3g}",
        f"{max(steps):.1f}" if steps else "",
        f"{max(own_steps):.1f}" if own_steps else "",
        "inherited" if all(row.inherited for row in rows) else "its own",
    )


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
