"""What machine code is generated for: triple, CPU name and CPU features as LLVM names them."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from dataclasses import dataclass

import llvmlite.binding as llvm


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


def host_target() -> Target:
    """The machine this process runs on.

    `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` replace what LLVM detects, as they do in numba. Features are always
    spelled out, because the name of a CPU alone promises more than a virtual machine may offer.
    """
    cpu = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if cpu == "generic" else llvm.get_host_cpu_features().flatten()
    return Target(_jit_triple(llvm.get_process_triple()), cpu, features)


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


def isa_tiers(target: Target) -> tuple[str, ...]:
    """Names under which the kernel table lists kernels that suit `target`, best first; "generic" suits all."""
    if not all(target.has(feature) for feature in ("avx512f", "avx512bw", "avx512vl")):
        return ("generic",)
    if all(target.has(feature) for feature in ("amx-tile", "amx-int8", "avx512vnni")) and tiles_permitted():
        return ("amx", "avx512", "generic")
    return ("avx512", "generic")


@functools.cache
def tiles_permitted() -> bool:
    """Ask Linux, once per process, to let its threads use tile registers (its Documentation/arch/x86/xstate.rst)."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    number, request, tile_data = 158, 0x1023, 18  # SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ctypes.CDLL(None, use_errno=True).syscall(number, request, tile_data) == 0
