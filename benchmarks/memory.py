"""How near the arena of a plan is to the least that it could be: the largest sum of tensors that live at one time.

python benchmarks/memory.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime
from benchmarks import networks
from runtime.memory_planner import peak_of_live_sizes


def main() -> None:
    print(f"{'net':12} {'dtype':8} {'arena':>10} {'largest sum':>12} {'ratio':>6}")
    for net in networks.IMAGE_NETS:
        for dtype in ("int8", "float32"):
            model = runtime.load(converter.convert(networks.path(net, dtype)).bytes)
            shape = tuple(d or 1 for d in model.inputs[0].shape or ())
            plan = model.plan([np.zeros(shape, model.inputs[0].dtype)])
            least = peak_of_live_sizes(plan.storage.requests())
            print(f"{net:12} {dtype:8} {plan.arena.nbytes:10,} {least:12,} {plan.arena.nbytes / least:6.3f}")


if __name__ == "__main__":
    main()
