"""What loading a large net costs: seconds, and the peak of resident memory, each measured in a process of its own.

    python benchmarks/loading.py [--net ResNet50] [--forms 4bit 8bit int8 float32] [--runs 5]

The net is that of `networks.py`, which makes its `.tflite` files where they are missing. Medians of what each process
reports: `runtime.load`, the first run (batch 1, one thread; it packs the weights), the second one, and the peak above
the interpreter with imports. Kernels are compiled by a process before those that count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import converter
from benchmarks import networks

FORMS = {"4bit": ("float32", "4bit"), "8bit": ("float32", "8bit"), "int8": ("int8", None), "float32": ("float32", None)}
"""Form -> dtype of the `.tflite` file, and bits of stored weights."""

MEASURE = """
import json, sys, time
import numpy as np
import runtime

def peak():  # of this program alone: what getrusage tells begins with that of the process that started it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6

before, moments = peak(), [time.perf_counter()]
model = runtime.load(sys.argv[1], threads=1)
moments.append(time.perf_counter())
x = np.zeros([d or 1 for d in model.inputs[0].shape], model.inputs[0].dtype)
for _ in range(2):
    model(x)
    moments.append(time.perf_counter())
seconds = [b - a for a, b in zip(moments, moments[1:])]
print(json.dumps(dict(zip(("load", "first", "second"), seconds), peak=peak() - before)))
"""


def measure(file: Path) -> dict[str, float]:
    """Seconds and MB of a fresh process that loads the file and runs it twice."""
    command = [sys.executable, "-c", MEASURE, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=networks.ROOT)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", choices=networks.IMAGE_NETS, default="ResNet50")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{options.net:10} {'file MB':>8} {'load s':>8} {'first s':>8} {'second s':>9} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for form in options.forms:
            dtype, bits = FORMS[form]
            file = Path(folder) / f"{form}.xnn"
            file.write_bytes(converter.convert(networks.path(options.net, dtype), weights=bits).bytes)
            measure(file)
            found = [measure(file) for _ in range(options.runs)]
            load, first, second, peak = (
                statistics.median(run[name] for run in found) for name in ("load", "first", "second", "peak")
            )
            size = file.stat().st_size / 1e6
            print(f"{form:10} {size:8.1f} {load:8.3f} {first:8.3f} {second:9.4f} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()
