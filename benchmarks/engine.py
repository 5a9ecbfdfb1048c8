"""How fast xnn runs a net beside other engines on the same `.tflite` file, one sample at a time.

    python benchmarks/engine.py                         # all nets, int8 and float32, 1 and 2 threads
    python benchmarks/engine.py --nets MobileNetV2 --dtypes int8 --threads 1 --engines xnn LiteRT
    python benchmarks/engine.py --write benchmarks/RESULTS.md

Needs the extra `bench`. Outputs are compared before anything is timed. Engines take turns in blocks of calls, in an
order that moves on by one each round; the first calls of a block are not timed, so that no other engine's spinning
threads and cold caches count. Figures are medians in milliseconds, and ratios xnn / engine: below 1, xnn is faster.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from benchmarks import networks, report
from benchmarks.engines import ENGINES, Run, Unsupported, version

TIMED = 10  # calls of a block
PAUSE, WARM = 0.02, 0.04  # seconds between blocks, in which spinning threads go to sleep, and of calls before timing
LARGEST_DIFFERENCE = {"int8": 0.1, "float32": 1e-3}  # of the largest output
PEERS = ("LiteRT", "OpenVINO")  # "the best peer" is the better one of these


@dataclass
class Row:
    """One net: milliseconds by engine, and why others are missing."""

    net: str
    dtype: str
    threads: int
    milliseconds: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def ratio(self, engine: str) -> float | None:
        """xnn's time over the engine's."""
        found = self.milliseconds.get(engine)
        return None if found is None else self.milliseconds["xnn"] / found

    def best_ratio(self) -> float | None:
        """xnn's time over the best peer's."""
        return max((r for r in map(self.ratio, PEERS) if r is not None), default=None)


def sample(path: Path) -> np.ndarray:
    """One random input of the shape and dtype that the file wants."""
    import runtime
    from converter import convert

    info = runtime.load(convert(path).bytes).inputs[0]
    shape = tuple(1 if d is None else d for d in info.shape or ())
    rng = np.random.default_rng(0)
    if info.dtype == np.float32:
        return rng.normal(0, 1, shape).astype(np.float32)
    bounds = np.iinfo(info.dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(info.dtype)


def difference(outputs: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the range of outputs."""
    outputs, expected = (np.asarray(array, np.float64).reshape(-1) for array in (outputs, expected))
    return float(np.abs(outputs - expected).max() / np.ptp(expected))


def measure(net: str, dtype: str, threads: int, engines: list[str], calls: int) -> Row:
    """Raises SystemExit where an engine's outputs are not those of LiteRT."""
    row = Row(net, dtype, threads)
    path = networks.path(net, dtype)
    x = sample(path)
    runs: dict[str, Run] = {}
    expected = ENGINES["LiteRT"](path, x, 1)()
    for name in engines:
        try:
            runs[name] = ENGINES[name](path, x, threads)
            found = difference(runs[name](), expected)
        except (Unsupported, ImportError) as error:
            runs.pop(name, None)
            row.missing[name] = str(error)
            continue
        if found > LARGEST_DIFFERENCE[dtype]:
            if name == "xnn":
                raise SystemExit(f"{net} {dtype}: xnn differs from LiteRT by {found:.3g}")
            row.missing[name] = f"its outputs differ from LiteRT's by {found:.3g}"
            del runs[name]
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(-(-calls // TIMED)):
        for i in range(len(names)):
            name = names[(i + turn) % len(names)]
            run = runs[name]
            time.sleep(PAUSE)
            begin = time.perf_counter()
            run()
            while time.perf_counter() - begin < WARM:
                run()
            for _ in range(TIMED):
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    row.milliseconds = {name: 1e3 * statistics.median(taken) for name, taken in times.items()}
    return row


def processor() -> str:
    """The CPU's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


def heading(engines: list[str]) -> str:
    from runtime.native.target import host_target, isa_tiers

    versions = ", ".join(f"{name} {version(name)}" for name in engines)
    tier = isa_tiers(host_target())[0]
    return f"{date.today()}; {processor()}; kernels for {tier}; Python {platform.python_version()}; {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*networks.IMAGE_NETS, *networks.SMALL_NETS, "SSD-MobileNetV2"]
    parser.add_argument("--nets", nargs="+", choices=every, default=every, metavar="NET", help=", ".join(every))
    parser.add_argument("--dtypes", nargs="+", choices=("int8", "float32"), default=["int8", "float32"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--calls", type=int, default=60, help="timed calls of each engine (default 60)")
    parser.add_argument("--write", type=Path, help="also write the tables to this file, and a chart beside it")
    options = parser.parse_args()
    engines = [name for name in ENGINES if name in {"xnn", *options.engines} and version(name)]
    print(heading(engines), flush=True)
    rows = []
    for dtype in options.dtypes:
        for threads in options.threads:
            for net in options.nets:
                if networks.has(net, dtype):
                    rows.append(measure(net, dtype, threads, engines, options.calls))
                    print(report.line(rows[-1], engines), flush=True)
            print(report.summary([r for r in rows if (r.dtype, r.threads) == (dtype, threads)]), flush=True)
    if options.write:
        report.write(options.write, heading(engines), rows, engines)


if __name__ == "__main__":
    main()
