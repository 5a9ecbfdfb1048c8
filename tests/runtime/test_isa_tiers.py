"""`XNN_ISA`: lower tiers get the same int8 bits, float32 within rounding, and no instruction of a higher one."""

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import schema
from runtime.native.target import (
    TIERS,
    Target,
    available_tiers,
    create_target_machine,
    host_target,
    isa_tiers,
    lowered,
)
from schema import Model, Node, Tensor
from schema.errors import InputError
from tests.support.engine import graph_of

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "tier_results.py"
LINUX = "x86_64-unknown-linux-gnu"
SAPPHIRE_RAPIDS = (
    "+avx2,+fma,+avxvnni,+avx512f,+avx512bw,+avx512vl,+avx512vnni,+avx512fp16,+avx10.1,+amx-int8,+amx-tile"
)


def results_on(tier: str | None, path: Path) -> dict[str, np.ndarray]:
    """What tests.support.tier_results computes in a process of that tier, the machine's own for None."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("XNN_ISA", None)
    if tier is not None:
        environment["XNN_ISA"] = tier
    done = subprocess.run(
        [sys.executable, SCRIPT, str(path)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> dict[str, np.ndarray]:
    return results_on(None, tmp_path_factory.mktemp("tiers") / "host.npz")


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param(tier, marks=pytest.mark.slow if tier == "avx2" else pytest.mark.nightly)
        for tier in TIERS
        if tier != "amx"  # where it exists, it is what a machine runs when nothing is asked for
    ],
)
def test_tiers_agree(tier, ours, tmp_path):
    if tier not in available_tiers(host_target()):
        pytest.skip(f"this CPU lacks what {tier} needs")
    theirs = results_on(tier, tmp_path / "tier.npz")
    assert str(theirs.pop("features")) == lowered(host_target(), tier).features
    assert theirs.keys() == ours.keys() - {"features"}
    for name, found in theirs.items():
        expected = ours[name]
        if expected.dtype == np.int8:
            assert len(np.unique(expected)) > 20, name
            np.testing.assert_array_equal(found, expected, err_msg=name)
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=name)


@pytest.mark.nightly
@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier != "amx"])
def test_kernels_against_their_references(tier):
    """The tests of all kernels, those over guarded memory among them, once more on that tier."""
    if tier not in available_tiers(host_target()):
        pytest.skip(f"this CPU lacks what {tier} needs")
    folder = ROOT / "tests" / "runtime"
    files = [
        *folder.glob("test_*_kernels.py"),
        *(folder / f"test_{name}.py" for name in ("simd", "fusion", "linear_pair", "int16")),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "-m", "not nightly", *files],
        cwd=ROOT,
        env={**os.environ, "XNN_ISA": tier, "HYPOTHESIS_PROFILE": "ci"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_wide_kernels_are_chosen_by_features_not_by_name():
    assert isa_tiers(Target(LINUX, "sapphirerapids", "")) == ("generic",)
    assert isa_tiers(Target(LINUX, "generic", "+avx512f,+avx512bw,+avx512vl")) == ("avx512", "generic")


def test_tiers_of_a_machine(monkeypatch):
    monkeypatch.setattr("runtime.native.target.tiles_permitted", lambda: False)
    target = Target(LINUX, "sapphirerapids", SAPPHIRE_RAPIDS)
    assert available_tiers(target) == ("avx512vnni", "avx512", "avxvnni", "avx2", "scalar")
    monkeypatch.setattr("runtime.native.target.tiles_permitted", lambda: True)
    assert available_tiers(target) == tuple(TIERS)
    assert available_tiers(Target(LINUX, "alderlake", "+avx2,+fma,+avxvnni")) == ("avxvnni", "avx2", "scalar")
    assert available_tiers(Target("aarch64-unknown-linux-gnu", "generic", "+neon")) == ("scalar",)


@pytest.mark.parametrize("tier", list(TIERS))
def test_a_lowered_target_has_that_tier_first(tier, monkeypatch):
    monkeypatch.setattr("runtime.native.target.tiles_permitted", lambda: True)
    target = lowered(Target(LINUX, "sapphirerapids", SAPPHIRE_RAPIDS), tier)
    assert available_tiers(target)[0] == tier
    assert isa_tiers(target) == TIERS[tier].kernels


@pytest.mark.parametrize(("tier", "register"), [("avx512vnni", "zmm"), ("avx2", "ymm"), ("scalar", "xmm")])
def test_code_of_a_tier_uses_no_wider_registers(tier, register):
    """Also where the name of the CPU stands for more than the features that are listed."""
    if "x86_64" not in llvm.get_process_triple():
        pytest.skip("registers of x86")
    machine = create_target_machine(lowered(Target(LINUX, "sapphirerapids", SAPPHIRE_RAPIDS), tier))
    module = llvm.parse_assembly(
        f"""target triple = "{LINUX}"
        define void @f(ptr %p) "prefer-vector-width"="512" {{
          %a = load <16 x i32>, ptr %p
          %b = mul <16 x i32> %a, %a
          store <16 x i32> %b, ptr %p
          ret void
        }}"""
    )
    code = machine.emit_assembly(module)
    assert next(r for r in ("zmm", "ymm", "xmm") if f"%{r}" in code) == register


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("XNN_ISA", "neon", r"'neon', which is no tier .*; this machine has .*scalar$"),
        ("NUMBA_CPU_FEATURES", "+avx2,fma", r"NUMBA_CPU_FEATURES has 'fma', which does not begin with \+ or -"),
        ("NUMBA_CPU_FEATURES", "+avx2, +fma", r"NUMBA_CPU_FEATURES has ' \+fma'"),
        ("XNN_ISA", "AVX2 ", r"'AVX2 ', which is no tier"),
        ("NUMBA_CPU_FEATURES", "+avx2,+fma4,+unheard-of", r"NUMBA_CPU_FEATURES asks for fma4, which this CPU lacks"),
    ],
)
def test_bad_variables_are_errors(monkeypatch, variable, value, message):
    if llvm.get_host_cpu_features().get("fma4") is not False:
        pytest.skip("not an x86 CPU, or one with fma4")
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=message):
        host_target.__wrapped__()


def test_hidden_features_are_no_tier(monkeypatch):
    if not all(llvm.get_host_cpu_features().get(f) for f in ("avx2", "fma", "avx512f")):
        pytest.skip("this CPU has nothing to hide")
    monkeypatch.delenv("XNN_ISA", raising=False)
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2,+fma")
    assert isa_tiers(host_target.__wrapped__()) == ("generic",)
    monkeypatch.setenv("XNN_ISA", "avx512")
    with pytest.raises(InputError, match=r"'avx512', which this machine lacks; this machine has avx2, scalar$"):
        host_target.__wrapped__()


def test_an_unknown_tier_at_the_command_line(tmp_path):
    x, y = Tensor("x", np.float32, (1, 4)), Tensor("y", np.float32)
    (tmp_path / "m.xnn").write_bytes(schema.write(Model([graph_of([Node("ABS", [x], [y])], [x], [y])])))
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(tmp_path / "m.xnn"), "--input", str(tmp_path / "x.npy")],
        cwd=ROOT,
        env={**os.environ, "XNN_ISA": "mmx"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: XNN_ISA asks for 'mmx'")
    assert done.stderr.count("\n") == 1
