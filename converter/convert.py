"""The whole way from a model to the bytes of an `.xnn` file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import schema
from converter import diagnosis, frontends, preservation, progress
from converter import quantize as quantization
from converter.integers import computes_integers
from converter.passes import manager
from converter.quantize.options import DEFAULT_OBSERVER, Options
from converter.quantize.vectors import check_bits, round_vectors
from converter.report import Report
from schema import ledger
from schema.command_line import replacing
from schema.errors import InputError
from schema.version import __version__


@dataclass(frozen=True)
class Result:
    """A converted model. bytes: the `.xnn` file. report: what was done, `print` it."""

    bytes: bytes = field(repr=False)
    report: Report

    def save(self, path: str | os.PathLike) -> Path:
        """Write the file. One that is there is replaced once the new one is complete."""
        target = Path(path)
        require_writable(target)
        with replacing(target) as file:
            file.write(self.bytes)
        return target


def convert(
    source: Any,
    quantize: str = "none",
    calibration: Any = None,
    *,
    weights: str | int | Mapping[str, str | int] | None = None,
    signature: str | None = None,
    io_dtype: str | None = None,
    custom_objects: Mapping[str, Any] | str | None = None,
    observer: str = DEFAULT_OBSERVER,
    keep_float: str | Sequence[str] = (),
    int16: str | Sequence[str] = (),
    equalize: bool = False,
    bias_correction: bool = False,
    diagnose: bool = False,
    vector_bits: int | None = None,
) -> Result:
    """Convert a model.

    source: a Keras model object (Keras 3 or tf_keras), or the path of a SavedModel folder, a .keras, an .h5 or a
        .tflite file (or the bytes of the last).
    quantize: "none" (as the source is: a quantize-aware model, which has learned its ranges, becomes int8), "int8"
        (needs calibration, unless the ranges are learned), "int16x8" (so does that, with int16 activations),
        "int8-weights" (weights are stored as int8, everything computed in float32; calibration makes it more accurate)
        or "float16" (weights).
    calibration: an array or a dict of arrays, samples on axis 0; or an iterable of batches (arrays, tuples or dicts),
        such as a tf.data.Dataset.
    weights: bits of stored weights: "4bit" (1 to 8), by layer "head=8bit,conv*=3bit,4bit" or {"head": 8, "conv*": 3},
        where the first pattern that matches counts. All is computed in float32, or as `quantize` says, with these
        weights. Calibration makes it more accurate.
    signature: of a SavedModel or a .tflite file, by default "serving_default" or the only one.
    io_dtype: "int8" makes float inputs and outputs of an int8 model int8, "int16" those of an int16x8 model int16; None
        and "float32" keep them.
    custom_objects: classes and functions by name that a .keras or .h5 file needs, or the module that defines them.
    observer: how int8 ranges are taken from the calibration data: "minmax", "percentile" or "entropy".
    keep_float: patterns of layer names, as of fnmatch, that are not quantized: "conv1", "block?/*", ("stem", "*_dw").
    int16: patterns of layers of an int8 model that have int16 activations.
    equalize: scale channels across layers, so that one scale serves all of a tensor; bias_correction: make up for
        shifted means in the biases. Both are kept only where the calibration data shows that they help.
    vector_bits: of biases and channel scales that are stored as float32: 4 to 8, None for all 32. What has been trained
        to few bits a weight (`xnn_tf.RateCallback`) is a fifth smaller with 8.
    diagnose: also tell in `report.diagnosis` what was found in the graph, what rewrites save, and what was not done.

    The input's batch stays dynamic, and layer, input and output names are the source's.
    Raises schema.XnnError of a kind that says what is wrong with which layer, file or argument, and what to do.
    """
    options = Options(quantize, observer, io_dtype, keep_float, int16, equalize, bias_correction, weights)
    options.check_calibration(calibration)
    if vector_bits is not None:
        check_bits(vector_bits)
    with progress.shown() as display:
        with display.stage("reading the model"):
            graph = frontends.read(source, signature, custom_objects)
        integers = computes_integers(graph)
        if integers and (quantize != "none" or options.weights):
            raise InputError(
                f"{describe(source)} is quantized already and stays as it is: leave out "
                + (f"quantize {quantize!r}" if quantize != "none" else "weights")
            )
        kernels = preservation.kernels(graph)
        with display.stage("rewriting the graph"):
            explanation = manager.optimize(graph, display.detail, measure=diagnose)
            found = diagnosis.diagnose(graph, explanation) if diagnose else None
        kernels = preservation.expected(kernels, preservation.kernels(graph), explanation)
        report = None
        if quantize == "none" and quantization.has_learned(graph):
            quantize = "int8"
            options = replace(options, method=quantize)
        if quantize != "none" or options.weights:
            with display.stage("quantizing"):
                report = quantization.quantize(graph, options, calibration, display.advance)
        if vector_bits is not None:
            round_vectors(graph, vector_bits)
        with display.stage("writing the file"):
            rule = quantization.REQUANTIZATION if quantize == "int8" else schema.Model.requantization
            data = schema.write(schema.Model([graph], rule, producer=f"xnn {__version__}"))
        with display.stage("checking the file"):
            file = schema.read(data)
            written = [kernel for part in file.graphs for kernel in preservation.kernels(part)]
            preserved = preservation.check(kernels, preservation.kernels(graph), written)
    seconds = display.seconds
    stored = ledger.by_layer(file, data)
    done = Report(describe(source), len(data), graph, explanation, report, seconds, integers, found, preserved, stored)
    return Result(data, done)


def require_writable(target: Path) -> None:
    """Raise InputError for a path where no file can be written."""
    if target.is_dir():
        raise InputError(f"{target} is a folder: name the file to write")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")


def describe(source: Any) -> str:
    """How messages call a source."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return f"a .tflite file of {len(source)} bytes"
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else f"model '{getattr(source, 'name', source)}'"
