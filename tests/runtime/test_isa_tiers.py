"""CPUs with fewer features get the same int8 bits, and float32 within rounding."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runtime.native.target import Target, host_target, isa_tiers

ROOT = Path(__file__).parents[2]

# Features are checked before code is made, so a lower tier runs on every newer CPU.
TIERS = {
    "baseline": ("generic", ""),
    "avx2": ("generic", "+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+popcnt"),
    "avx512": ("generic", "+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+popcnt,+avx512f,+avx512bw,+avx512vl,+avx512dq"),
}

SCRIPT = """
import sys
import numpy as np
from schema import Node, Quantization, Tensor
from schema.ops.attributes import BatchMatMulAttributes, Conv2DAttributes
from tests.support.engine import graph_of, run
from tests.support.operands import float_operands, int8_operands

rng = np.random.default_rng(0)
results = {}
for name, make in (("float32", float_operands), ("int8", int8_operands)):
    x, input_, constants, y = make(rng, (1, 9, 8, 19), (37, 3, 3, 19), 37, True)
    nodes = [Node("CONV_2D", [input_, *constants], [y], Conv2DAttributes(2, 1, 1, 1, "SAME", activation="RELU"))]
    for rule in ("TFLITE_DOUBLE", "FP32_ROUND_EVEN"):
        results[f"conv {name} {rule}"] = run(graph_of(nodes, [input_], [y]), [x], 1, rule)[0][0]
    extra = {"axis": 3} if make is int8_operands else {}
    x, input_, constants, y = make(rng, (1, 9, 8, 19), (1, 3, 3, 38), 38, True, **extra)
    nodes = [Node("DEPTHWISE_CONV_2D", [input_, *constants], [y], Conv2DAttributes(padding="SAME"))]
    results[f"depthwise {name}"] = run(graph_of(nodes, [input_], [y]), [x])[0][0]
np.savez(sys.argv[1], **results)
"""


def results_on(tier: str | None, path: Path) -> dict[str, np.ndarray]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if tier is not None:
        environment["NUMBA_CPU_NAME"], environment["NUMBA_CPU_FEATURES"] = TIERS[tier]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param("avx2", marks=pytest.mark.slow),
        pytest.param("baseline", marks=pytest.mark.nightly),
        pytest.param("avx512", marks=pytest.mark.nightly),
    ],
)
def test_tiers_agree(tier, tmp_path):
    host = host_target()
    _, features = TIERS[tier]
    if "x86" not in host.triple or not all(host.has(feature[1:]) for feature in features.split(",") if feature):
        pytest.skip(f"this CPU lacks what {tier} needs")
    ours, theirs = results_on(None, tmp_path / "host.npz"), results_on(tier, tmp_path / "tier.npz")
    assert ours.keys() == theirs.keys()
    for name, expected in ours.items():
        if expected.dtype == np.int8:
            assert len(np.unique(expected)) > 20, name
            np.testing.assert_array_equal(theirs[name], expected, err_msg=name)
        else:
            np.testing.assert_allclose(theirs[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_wide_kernels_are_chosen_by_features_not_by_name():
    assert isa_tiers(Target("x86_64-unknown-linux-gnu", "sapphirerapids", "")) == ("generic",)
    features = "+avx512f,+avx512bw,+avx512vl"
    assert isa_tiers(Target("x86_64-unknown-linux-gnu", "generic", features)) == ("avx512", "generic")
