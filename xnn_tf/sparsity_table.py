"""How many weights of a model are zero."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.kernels import find_kernels
from xnn_tf.layer_patterns import Patterns, select


@dataclass(frozen=True)
class SparsityRow:
    """The zeros of one kernel.

    Attributes:
        layer: its layer's path in the model, such as `encoder/dense`.
        weight: its name in the layer, such as `kernel`.
        shape: its shape.
        zeros: how many of its values are exactly zero.
        size: how many values it has.
    """

    layer: str
    weight: str
    shape: tuple[int, ...]
    zeros: int
    size: int

    @property
    def sparsity(self) -> float:
        """Share of zeros, in [0, 1]."""
        return self.zeros / self.size if self.size else 0.0


@dataclass(frozen=True)
class SparsityTable:
    """One row per kernel; prints as a table.

    Attributes:
        rows: in the order of the model's layers.
    """

    rows: tuple[SparsityRow, ...]

    @property
    def total(self) -> SparsityRow:
        """The sums over all rows."""
        return SparsityRow("total", "", (), sum(row.zeros for row in self.rows), sum(row.size for row in self.rows))

    def __iter__(self) -> Iterator[SparsityRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, layer: str) -> SparsityRow:
        """The first row of a layer, by its path or its `path/weight`."""
        for row in self.rows:
            if layer in (row.layer, f"{row.layer}/{row.weight}"):
                return row
        raise KeyError(layer)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as for JSON: `rows`, with layer, weight, shape, zeros, size and sparsity, and their `total`."""
        return {
            "rows": [asdict(row) | {"shape": list(row.shape), "sparsity": row.sparsity} for row in self.rows],
            "total": {"zeros": self.total.zeros, "size": self.total.size, "sparsity": self.total.sparsity},
        }

    def __str__(self) -> str:
        header = ("layer", "weight", "shape", "zeros", "size", "sparsity")
        cells = [header] + [
            (
                row.layer,
                row.weight,
                "×".join(map(str, row.shape)),
                f"{row.zeros:,}",
                f"{row.size:,}",
                f"{100 * row.sparsity:.2f} %",
            )
            for row in (*self.rows, self.total)
        ]
        widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
        lines = [
            "  ".join(
                cell.rjust(width) if column > 2 else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        rule = "─" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])

    __repr__ = __str__


def sparsity(model: Any, include: Patterns | None = None, exclude: Patterns | None = None) -> SparsityTable:
    """Counts the zeros of every kernel, pruned or not: of convolutions, dense, recurrent and embedding layers, and of
    others.

    Args:
        model: of Keras 3 (on TensorFlow) or tf_keras.
        include: layer-name patterns of what to list, see `xnn_tf.layer_patterns`; None lists all.
        exclude: layer-name patterns of what to leave out.

    Raises:
        InputError: no Keras model, one that is not built, or a pattern that matches no layer.
        UnsupportedError: Keras runs on another backend than TensorFlow.
    """
    kernels = find_kernels(model)
    if not kernels:
        raise InputError(f"{model.name} has no kernels: build it first (call it on data, or model.build(input_shape))")
    rows = []
    for kernel in select(kernels, "*/*" if include is None else include, exclude):
        values = np.asarray(kernel.variable.numpy())
        rows.append(
            SparsityRow(kernel.path, kernel.weight, kernel.layout.shape, int(np.sum(values == 0)), int(values.size))
        )
    return SparsityTable(tuple(rows))
