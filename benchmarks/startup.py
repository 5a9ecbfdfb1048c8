"""How long a new process takes to its first answer: a net in float32 by xnn, warm, and by LiteRT from the same model.

    python benchmarks/startup.py [--runs 11] [--net MobileNetV2]

Processes of both engines take turns; medians. xnn's own phases are shown, and what a warm process must not import.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

XNN = """
import sys, time
began = float(sys.argv[2])
t = [time.time()]
import numpy as np
t.append(time.time())
import runtime
t.append(time.time())
model = runtime.load(sys.argv[1], threads=1)
t.append(time.time())
x = np.zeros((1, 224, 224, 3), np.float32)
model.plan([x])
t.append(time.time())
model(x)
t.append(time.time())
import json
names = ["python", "import numpy", "import runtime", "read and verify", "plan, kernels, packing", "first run"]
unwanted = [m for m in ("tensorflow", "numba") if m in sys.modules]
phases = dict(zip(names, [b - a for a, b in zip([began, *t], t)]))
print(json.dumps({"total": t[-1] - began, "phases": phases, "unwanted": unwanted}))
"""
LITERT = """
import sys, time
began = float(sys.argv[2])
import numpy as np
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros((1, 224, 224, 3), np.float32))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
import json
print(json.dumps({"total": time.time() - began}))
"""


def make(folder: Path, net: str) -> tuple[Path, Path]:
    """The net as .xnn and .tflite files (made in a process of its own, which imports TensorFlow)."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
import keras, tensorflow as tf, converter
model = keras.applications.{net}(weights=None)
converter.convert(model).save({str(folder / "net.xnn")!r})
model.export({str(folder / "saved")!r}, verbose=False)
data = tf.lite.TFLiteConverter.from_saved_model({str(folder / "saved")!r}).convert()
open({str(folder / "net.tflite")!r}, "wb").write(data)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return folder / "net.xnn", folder / "net.tflite"


def start(code: str, path: Path) -> dict:
    """One process: seconds from its start to its first answer, as it reports them."""
    command = [sys.executable, "-c", code, str(path), repr(time.time())]
    cwd = Path(__file__).resolve().parents[1]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--net", default="MobileNetV2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        xnn, tflite = make(Path(folder), options.net)
        start(XNN, xnn)  # compiles what is not in the cache
        runs: dict[str, list[dict]] = {"xnn": [], "LiteRT": []}
        for _ in range(options.runs):
            runs["xnn"].append(start(XNN, xnn))
            runs["LiteRT"].append(start(LITERT, tflite))
    totals = {name: statistics.median(r["total"] for r in found) for name, found in runs.items()}
    versions = {p: importlib.metadata.version(p) for p in ("numpy", "llvmlite", "ai-edge-litert")}
    print(f"{options.net} float32, process start to first answer, median of {options.runs}, one thread")
    print(f"{platform.platform()}, Python {platform.python_version()}, {versions}")
    for name, total in totals.items():
        print(f"  {name:7} {total:.3f} s")
    print(f"  ratio   {totals['xnn'] / totals['LiteRT']:.2f}")
    for phase in runs["xnn"][0]["phases"]:
        print(f"    {phase:24} {np.median([r['phases'][phase] for r in runs['xnn']]):.3f} s")
    print(f"  imported though not needed: {runs['xnn'][0]['unwanted'] or 'nothing'}")


if __name__ == "__main__":
    main()
