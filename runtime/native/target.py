"""What machine code is generated for: triple, CPU name and CPU features as LLVM names them.

Features decide, not names of CPUs: a virtual machine may offer less than the CPU it reports. Levels of them have names
(`TIERS`); `XNN_ISA` asks for one below the best that the machine has.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from dataclasses import dataclass

import llvmlite.binding as llvm

from schema.errors import InputError

ISA_VARIABLE = "XNN_ISA"
FEATURES_VARIABLE = "NUMBA_CPU_FEATURES"


@dataclass(frozen=True)
class Target:
    """A code generation target.

    `features` is LLVM's comma separated list (`+avx2,-avx512f`); together with `cpu` it decides which instructions
    may be emitted, so it is part of the key under which object code is kept.
    """

    triple: str
    cpu: str
    features: str

    def has(self, feature: str) -> bool:
        """Whether `feature` (LLVM's name, for example "avx512vnni") is switched on explicitly."""
        return f"+{feature}" in self.features.split(",")


@dataclass(frozen=True)
class Tier:
    """A level of instruction sets.

    needs: features it is made of. kernels: where the kernel table looks, best first. above: beginnings of the names of
    features of higher tiers. roots: those of them that all others build on, so that LLVM leaves all out that leaves
    these out.
    """

    needs: tuple[str, ...]
    kernels: tuple[str, ...]
    above: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


_AVX512 = ("avx512f", "avx512bw", "avx512vl")
_VNNI = (*_AVX512, "avx512vnni")

# Best first. All compute the same int8 results.
TIERS: dict[str, Tier] = {
    "amx": Tier((*_VNNI, "amx-tile", "amx-int8"), ("amx", "avx512", "generic")),
    "avx512vnni": Tier(_VNNI, ("avx512", "generic"), ("amx-",), ("amx-tile",)),
    "avx512": Tier(
        _AVX512,
        ("avx512", "generic"),
        ("amx-", "avx10.", "avx512vnni", "avxvnni"),
        ("amx-tile", "avx512vnni", "avxvnni"),
    ),
    "avxvnni": Tier(("avx2", "fma", "avxvnni"), ("generic",), ("amx-", "avx10.", "avx512"), ("amx-tile", "avx512f")),
    "avx2": Tier(
        ("avx2", "fma"),
        ("generic",),
        ("amx-", "avx10.", "avx512", "avxvnni", "avxifma", "avxneconvert"),
        ("amx-tile", "avx512f", "avxvnni", "avxifma", "avxneconvert"),
    ),
    "scalar": Tier((), ("generic",)),
}


@functools.cache
def host_target() -> Target:
    """The machine this process runs on, or less of it: looked at once, as kernels of one process must fit together.

    `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` replace what LLVM detects, as they do in numba; `XNN_ISA` then leaves out
    what is above a tier. Raises InputError for features or a tier that this machine lacks.
    """
    cpu = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get(FEATURES_VARIABLE)
    if features is None:
        features = "" if cpu == "generic" else llvm.get_host_cpu_features().flatten()
    else:
        _check_features(features)
    target = Target(_jit_triple(llvm.get_process_triple()), cpu, features)
    wanted = os.environ.get(ISA_VARIABLE)
    return lowered(target, wanted) if wanted else target


def _check_features(features: str) -> None:
    """What LLVM cannot read, and code with an instruction that the CPU lacks, would end the process."""
    given = [feature for feature in features.split(",") if feature]
    unclear = [feature for feature in given if feature[0] not in "+-"]
    if unclear:
        raise InputError(f"{FEATURES_VARIABLE} has '{unclear[0]}', which does not begin with + or -")
    present = llvm.get_host_cpu_features()
    lacking = [f[1:] for f in given if f[0] == "+" and present.get(f[1:]) is False]
    if lacking:
        raise InputError(f"{FEATURES_VARIABLE} asks for {', '.join(lacking)}, which this CPU lacks")


def _jit_triple(triple: str) -> str:
    # LLVM's in-process linker loads ELF on Windows more reliably than COFF.
    return triple + "-elf" if "windows" in triple and not triple.endswith("-elf") else triple


def create_target_machine(target: Target) -> llvm.TargetMachine:
    """LLVM's code generator for `target`, optimising fully and emitting position independent code."""
    if target.triple == _jit_triple(llvm.get_process_triple()):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    reloc = "default" if target.triple.startswith("wasm") else "pic"
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc=reloc, codemodel="default"
    )


def available_tiers(target: Target) -> tuple[str, ...]:
    """Names of the tiers whose code runs on `target`, best first; "scalar", which needs nothing, is the last."""
    return tuple(
        name
        for name, tier in TIERS.items()
        if all(map(target.has, tier.needs)) and (name != "amx" or tiles_permitted())
    )


def isa_tiers(target: Target) -> tuple[str, ...]:
    """Names under which the kernel table lists kernels that suit `target`, best first; "generic" suits all."""
    return TIERS[available_tiers(target)[0]].kernels


def lowered(target: Target, wanted: str) -> Target:
    """`target` without the features above the tier `wanted`. Raises InputError for one that it has not."""
    tiers = available_tiers(target)
    if wanted not in tiers:
        what = "which this machine lacks" if wanted in TIERS else "which is no tier of instruction sets"
        raise InputError(f"{ISA_VARIABLE} asks for '{wanted}', {what}; this machine has {', '.join(tiers)}")
    if wanted == "scalar":
        return Target(target.triple, "generic", "")
    tier = TIERS[wanted]
    kept = [f for f in target.features.split(",") if not (tier.above and f[1:].startswith(tier.above))]
    return Target(target.triple, target.cpu, ",".join([*kept, *(f"-{root}" for root in tier.roots)]))


@functools.cache
def tiles_permitted() -> bool:
    """Ask Linux, once per process, to let its threads use tile registers (its Documentation/arch/x86/xstate.rst)."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    number, request, tile_data = 158, 0x1023, 18  # SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ctypes.CDLL(None, use_errno=True).syscall(number, request, tile_data) == 0
