"""How long a new process takes to its first answer: a net by xnn, warm, and by LiteRT from the same `.tflite` file.

    python benchmarks/startup.py [--net MobileNetV2] [--dtype int8] [--runs 11] [--cold 1]

Processes of both engines take turns; medians. xnn's own phases are shown, and what a warm process must not import.
Then xnn with an empty cache, where it compiles its kernels: seconds, and seconds of CPU, which say what an idle machine
would take when this one is not. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import converter
from benchmarks import networks

ROOT = networks.ROOT

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
x = np.zeros([d or 1 for d in model.inputs[0].shape], model.inputs[0].dtype)
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
details = interpreter.get_input_details()[0]
interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
import json
print(json.dumps({"total": time.time() - began}))
"""


def start(code: str, path: Path, cache: Path | None = None) -> dict:
    """One process: seconds from its start to its first answer, as it reports them; `lines` of progress, `cpu` seconds.

    Python's bytecode is kept beside `path`, as it is for installed packages. cache: a folder of compiled kernels other
    than the usual one.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(path.with_name("bytecode"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        environment["XNN_CACHE"] = str(cache)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, str(path), repr(time.time())]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout) | {"lines": done.stderr.splitlines(), "cpu": cpu}


def median(runs: list[dict], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11, help="processes of each engine (default 11)")
    parser.add_argument("--cold", type=int, default=1, help="processes with an empty cache (default 1)")
    parser.add_argument("--net", choices=list(networks.IMAGE_NETS), default="MobileNetV2")
    parser.add_argument("--dtype", choices=("int8", "float32"), default="int8")
    options = parser.parse_args()
    tflite = networks.path(options.net, options.dtype)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    with tempfile.TemporaryDirectory() as folder:
        xnn = Path(folder, "net.xnn")
        converter.convert(tflite).save(xnn)
        lite = Path(shutil.copy(tflite, Path(folder, "net.tflite")))
        start(XNN, xnn)  # compiles what is not in the cache
        start(LITERT, lite)
        runs: dict[str, list[dict]] = {"xnn": [], "LiteRT": []}
        for _ in range(options.runs):
            runs["xnn"].append(start(XNN, xnn))
            runs["LiteRT"].append(start(LITERT, lite))
        cold = [start(XNN, xnn, Path(folder, f"cache{i}")) for i in range(options.cold)]
    versions = {p: importlib.metadata.version(p) for p in ("numpy", "llvmlite", "ai-edge-litert")}
    print(f"{options.net} {options.dtype}, process start to first answer, median of {options.runs}, one thread")
    print(f"{platform.platform()}, Python {platform.python_version()}, {versions}; load before: {load}")
    for name, found in runs.items():
        print(f"  {name:7} {median(found, 'total'):.3f} s ({median(found, 'cpu'):.3f} s of CPU)")
    print(f"  ratio   {median(runs['xnn'], 'total') / median(runs['LiteRT'], 'total'):.2f}")
    for phase in runs["xnn"][0]["phases"]:
        print(f"    {phase:24} {np.median([r['phases'][phase] for r in runs['xnn']]):.3f} s")
    print(f"  imported though not needed: {runs['xnn'][0]['unwanted'] or 'nothing'}")
    if cold:
        print(f"  cold    {median(cold, 'total'):.1f} s ({median(cold, 'cpu'):.1f} s of CPU)")
        print("\n".join(f"    {line}" for line in cold[0]["lines"]))


if __name__ == "__main__":
    main()
