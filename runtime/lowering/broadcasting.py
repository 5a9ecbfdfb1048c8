"""Broadcasting for kernels: as few dimensions as the operands allow, the innermost one a run of contiguous elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CHUNK = 16384  # elements that one tile computes at the most


@dataclass(frozen=True)
class Broadcast:
    """inner: elements of a run. steps: how each operand moves along a run (1 or 0). outer: sizes of the other
    dimensions, C order; strides: for each operand, elements per outer dimension."""

    inner: int
    steps: tuple[int, ...]
    outer: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        rows = 1
        for size in self.outer:
            rows *= size
        return rows

    @property
    def chunks(self) -> int:
        return max(1, -(-self.inner // CHUNK))


def broadcast(shapes: Sequence[Sequence[int]], output: Sequence[int]) -> Broadcast:
    """How contiguous operands of these shapes walk over an output of shape `output`, neighbouring dimensions merged."""
    rank = len(output)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    groups: list[tuple[int, tuple[bool, ...]]] = []  # (size, is each operand there)
    for axis, size in enumerate(output):
        if size == 1:
            continue
        present = tuple(shape[axis] == size for shape in padded)
        if groups and groups[-1][1] == present:
            groups[-1] = (groups[-1][0] * size, present)
        else:
            groups.append((size, present))
    if not groups:
        groups.append((1, (True,) * len(shapes)))
    strides: list[list[int]] = []
    for operand in range(len(shapes)):
        step, of_operand = 1, []
        for size, present in reversed(groups):
            of_operand.append(step if present[operand] else 0)
            step *= size if present[operand] else 1
        strides.append(of_operand[::-1])
    return Broadcast(
        groups[-1][0],
        tuple(s[-1] for s in strides),
        tuple(size for size, _ in groups[:-1]),
        tuple(tuple(s[:-1]) for s in strides),
    )
