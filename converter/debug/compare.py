"""Comparing a float model with its quantized form, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from converter import frontends, progress
from converter import quantize as quantization
from converter.convert import describe
from converter.debug.advice import Adviser
from converter.debug.comparison import Comparison, Row
from converter.debug.probes import Probed, Tap, in_parts, probe
from converter.integers import computes_integers
from converter.passes import manager
from converter.quantize import Options
from converter.quantize.calibration import Batch
from converter.quantize.execution import Execution
from converter.quantize.fidelity import Fidelity
from converter.quantize.measure import Reference
from converter.quantize.observation import MEMORY
from converter.quantize.options import CALIBRATED, DEFAULT_OBSERVER
from converter.quantize.samples import count, hold
from converter.rewriter import copy
from schema import inference
from schema.errors import InputError
from schema.graph import Tensor


def compare(
    source: Any,
    calibration: Any,
    quantize: str = "int8",
    *,
    signature: str | None = None,
    custom_objects: Mapping[str, Any] | str | None = None,
    observer: str = DEFAULT_OBSERVER,
    keep_float: str | Sequence[str] = (),
    int16: str | Sequence[str] = (),
    advise: bool = True,
) -> Comparison:
    """Quantize a float model as `converter.convert` does, and tell how far each layer is from float.

    source, signature, custom_objects, calibration, quantize, observer, keep_float, int16: as for `converter.convert`;
        quantize is a method with integer activations. The calibration data is held in memory.
    advise: also try what would help, which quantizes the model several times more.
    Raises InputError for a source that is quantized already, and what `converter.convert` raises.
    """
    if quantize not in CALIBRATED:
        raise InputError(f"quantize is {quantize!r}; what is compared with float is {' or '.join(CALIBRATED)}")
    options = Options(quantize, observer, keep_float=keep_float, int16=int16)
    with progress.shown() as display:
        with display.stage("reading the model"):
            real = frontends.read(source, signature, custom_objects)
        if computes_integers(real):
            raise InputError(f"{describe(source)} is quantized already: there is no float model to compare it with")
        with display.stage("rewriting the graph"):
            manager.optimize(real, display.detail)
        with display.stage("quantizing"):
            inference.annotate(real)
            batches = hold(real, calibration)
            quantized = copy(real)
            quantization.quantize(quantized, options, batches, display.advance)
        with display.stage("comparing"):
            rows = _rows(probe(real, quantized), batches, display)
            fidelities = Reference(real, batches).fidelities(quantized)
        outputs = {name: fidelity.snr for name, fidelity in fidelities.items()}
        found = Comparison(describe(source), quantize, count(batches), rows, outputs)
        if not advise:
            return found
        with display.stage("trying what helps"):
            adviser = Adviser(real, quantized, options, batches, display.detail)
            advice = adviser.advise(found.candidates())
    return Comparison(found.source, quantize, found.samples, rows, outputs, advice)


def _rows(probed: Probed, batches: Sequence[Batch], display: progress.Progress) -> list[Row]:
    accumulated, own = ([Fidelity() for _ in probed.taps] for _ in range(2))
    executions: dict[tuple, list[tuple[list[Tap], Execution]]] = {}
    numbers = {tap: number for number, tap in enumerate(probed.taps)}
    for done, batch in enumerate(batches):
        shapes = tuple(array.shape for array in batch)
        if shapes not in executions:
            executions[shapes] = _executions(probed, shapes)
        for taps, execution in executions[shapes]:
            values = dict(zip(execution.tensors, execution(batch), strict=True))
            for tap in taps:
                for fidelity, tensors in ((accumulated, tap.accumulated), (own, tap.own)):
                    for real, tensor in zip(tap.real, tensors, strict=False):
                        fidelity[numbers[tap]].add(values[real], values[tensor])
        display.advance("comparing", done + 1, len(batches))
    rows = [_row(tap, accumulated[number], own[number]) for tap, number in numbers.items()]
    return sorted(rows, key=lambda row: row.snr)


def _executions(probed: Probed, shapes: Sequence[tuple[int, ...]]) -> list[tuple[list[Tap], Execution]]:
    """In as many parts as keep what is held at once below MEMORY. Dimensions that only running tells count as 1."""
    types = inference.infer(probed.graph, shapes).types
    size: dict[Tensor, int] = {t: 4 * math.prod(d or 1 for d in types[t].shape or ()) for t in probed.graph.outputs}
    parts = in_parts(probed.taps, size, MEMORY)
    return [
        (taps, Execution(probed.graph, list(dict.fromkeys(t for tap in taps for t in tap.tensors)))) for taps in parts
    ]


def _row(tap: Tap, accumulated: Fidelity, own: Fidelity) -> Row:
    dtype = "float32" if tap.dtype is None else str(tap.dtype)
    row = (tap.layer, tap.op, dtype, accumulated.snr, accumulated.cosine, accumulated.max_error)
    if tap.step is None:
        return Row(*row)
    return Row(
        *row,
        accumulated.max_error / tap.step,
        own.snr,
        own.cosine,
        own.max_error,
        own.max_error / tap.step,
        tap.moves,
    )
