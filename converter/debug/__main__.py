"""`python -m converter.debug SOURCE --calibration FILE`: which layers lose accuracy, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from converter.convert import require_writable
from converter.debug.compare import compare
from converter.quantize import load
from converter.quantize.observers import OBSERVERS
from converter.quantize.options import CALIBRATED, DEFAULT_OBSERVER
from schema.command_line import guarded, replacing
from schema.version import __version__

EXAMPLES = """examples:
  python -m converter.debug saved_model/ --calibration calib.npy
  python -m converter.debug model.keras --calibration calib.npz --top 10 --json errors.json
  python -m converter.debug model.tflite --calibration calib.npy --keep-float 'head/*' --no-advice

The table tells, for each layer, its error in the whole quantized model, and its own: that of the layer alone, fed with
what the float model feeds it. Advice is arguments for `python -m converter`, each tried on the calibration data.
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m converter.debug",
        description="Compare a float model with its quantized form, layer by layer, the worst first.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="SavedModel folder, .keras, .h5 or .tflite file, not quantized")
    add("--calibration", metavar="FILE", required=True, help=".npy or .npz file of typical inputs")
    add("--quantize", choices=CALIBRATED, default=CALIBRATED[0], help=f"default: {CALIBRATED[0]}")
    add("--observer", choices=OBSERVERS, default=DEFAULT_OBSERVER, help="how ranges are taken")
    for name, help_text in (("--keep-float", "layers that stay float"), ("--int16", "layers in int16")):
        add(name, action="append", default=[], metavar="PATTERNS", help=f"{help_text}, as for python -m converter")
    add("--signature", metavar="NAME", help="the source's signature")
    add("--custom-objects", metavar="MODULE", help="module or .py file that the source's file needs")
    add("--top", type=_rows, metavar="N", help="print the worst N layers only")
    add("--json", metavar="FILE", help="also write everything as JSON")
    add("--no-advice", action="store_true", help="compare only: quantizes once")
    add("--version", action="version", version=f"xnn {__version__}")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    if options.json is not None:
        require_writable(Path(options.json))
    comparison = compare(
        options.source,
        load(options.calibration),
        options.quantize,
        signature=options.signature,
        custom_objects=options.custom_objects,
        observer=options.observer,
        keep_float=",".join(options.keep_float),
        int16=",".join(options.int16),
        advise=not options.no_advice,
    )
    if options.json is not None:
        with replacing(options.json) as file:
            file.write(json.dumps(comparison.to_json(), indent=1).encode())
    print(comparison.text(options.top))


def _rows(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of layers, 1 or more")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
