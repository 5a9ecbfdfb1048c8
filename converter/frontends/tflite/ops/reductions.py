"""Reductions over axes, running sums, where the largest element is."""

from __future__ import annotations

from converter.frontends.tflite.reading import READERS, Reader, Reading, reads

REDUCTIONS = "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL".split()


def _reduction(op: str) -> Reader:
    def read(reading: Reading) -> None:
        reading.emit(op, reading.operands(2), keep_dims=reading.options["keep_dims"])

    return Reader("ReducerOptions", read)


READERS.update((op, _reduction(op)) for op in REDUCTIONS)


@reads("ARG_MAX", options="ArgMaxOptions")
def arg_max(reading: Reading) -> None:
    reading.emit("ARG_MAX", reading.operands(2), dtype=reading.output().dtype)


@reads("ARG_MIN", options="ArgMinOptions")
def arg_min(reading: Reading) -> None:
    reading.emit("ARG_MIN", reading.operands(2), dtype=reading.output().dtype)


@reads("CUMSUM", options="CumsumOptions")
def cumsum(reading: Reading) -> None:
    attributes = {name: reading.options[name] for name in ("exclusive", "reverse")}
    reading.emit("CUMSUM", reading.operands(2), **attributes)
