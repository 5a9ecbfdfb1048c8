"""`python -m converter SOURCE OUTPUT.xnn`: convert a model from the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from converter import quantize as quantization
from converter.convert import convert, require_writable
from converter.quantize.observers import OBSERVERS
from converter.quantize.options import DEFAULT_OBSERVER, METHODS
from schema.command_line import guarded, replacing
from schema.version import __version__

EXAMPLES = """examples:
  python -m converter saved_model/ out.xnn
  python -m converter model.keras out.xnn --quantize int8 --calibration calib.npy
  python -m converter saved_model/ out.xnn --quantize int8 --calibration calib.npz --explain
  python -m converter saved_model/ out.xnn --quantize int16x8 --calibration calib.npz
  python -m converter saved_model/ out.xnn --quantize int8 --calibration calib.npz --keep-float 'head/*' --int16 stem
  python -m converter saved_model/ out.xnn --weights 'head=8bit,4bit'
  python -m converter model.h5 out.xnn --custom-objects my_package.layers
  python -m converter saved_model/ out.xnn --signature serve --quantize int8-weights
  python -m converter model.tflite out.xnn

calibration files hold some hundred typical samples on axis 0: a .npy for one input, a .npz with one array for each
input, named as the input (numpy.savez("calib.npz", image=x)).
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m converter",
        description="Convert a Keras model (SavedModel folder, .keras or .h5 file) or a .tflite file to an .xnn file.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="SavedModel folder, .keras, .h5 or .tflite file")
    add(
        "output",
        metavar="OUTPUT.xnn",
        help="the file to write; one that is there is replaced once the new one is whole",
    )
    add(
        "--quantize",
        choices=METHODS,
        default="none",
        help="int8 and int16x8 (int16 activations, int8 weights) need --calibration; int8-weights stores a quarter of "
        "the weights' bytes and float16 half of them, both compute in float32; default: as the source is",
    )
    add(
        "--weights",
        metavar="BITS",
        action="append",
        default=[],
        help="store weights in 1 to 8 bits: '4bit', by layer 'head=8bit,conv*=3bit,4bit', commas or repeated",
    )
    add(
        "--calibration",
        metavar="FILE",
        help=".npy or .npz file of typical samples: ranges and weights are chosen to suit it",
    )
    add("--observer", choices=OBSERVERS, default=DEFAULT_OBSERVER, help="how int8 ranges are taken")
    add(
        "--io-dtype",
        choices=("float32", "int8", "int16"),
        help="dtype of inputs and outputs of an int8 (int16x8) model (default: float32)",
    )
    add(
        "--keep-float",
        metavar="PATTERNS",
        action="append",
        default=[],
        help="layers that are not quantized: names or patterns such as 'block?/*', separated by commas or repeated",
    )
    add(
        "--int16",
        metavar="PATTERNS",
        action="append",
        default=[],
        help="layers of an int8 model whose activations are int16",
    )
    add("--equalize", action="store_true", help="scale channels across layers where that helps (int8, int16x8)")
    add("--bias-correction", action="store_true", help="make up for shifted means where that helps (int8, int16x8)")
    add(
        "--vector-bits",
        metavar="BITS",
        type=int,
        help="of biases and channel scales that are stored as float32: 4 to 8 (default: all 32)",
    )
    add("--signature", metavar="NAME", help="the source's signature (default: serving_default, or the only one)")
    add(
        "--custom-objects",
        metavar="MODULE",
        help="module or .py file with the classes and functions that the file needs",
    )
    add(
        "--diagnose",
        action="store_true",
        help="print what was found in the graph, what is saved, and what was not done",
    )
    add("--diagnosis", metavar="FILE.json", help="write what --diagnose prints, as JSON")
    add("--explain", action="store_true", help="print what each rewrite found and changed, and every layer")
    add("--version", action="version", version=f"xnn {__version__}")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    require_writable(Path(options.output))
    if options.diagnosis is not None:
        require_writable(Path(options.diagnosis))
    calibration = None if options.calibration is None else quantization.load(options.calibration)
    result = convert(
        options.source,
        options.quantize,
        calibration,
        weights=",".join(options.weights) or None,
        signature=options.signature,
        io_dtype=options.io_dtype,
        custom_objects=options.custom_objects,
        observer=options.observer,
        vector_bits=options.vector_bits,
        keep_float=",".join(options.keep_float),
        int16=",".join(options.int16),
        equalize=options.equalize,
        bias_correction=options.bias_correction,
        diagnose=options.diagnose or options.diagnosis is not None,
    )
    target = result.save(options.output)
    if options.diagnosis is not None:
        with replacing(Path(options.diagnosis)) as file:
            file.write(json.dumps(result.report.diagnosis.as_dict(), indent=1).encode())
    if options.diagnose:
        print(f"{result.report.diagnosis}\n")
    if options.explain:
        print(result.report)
    elif options.equalize or options.bias_correction:
        print("\n".join(result.report.quantization.notes))
    print(f"{target}: {result.report.summary()}")


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
