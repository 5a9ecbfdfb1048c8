import importlib
import struct
from pathlib import Path

import pytest

import runtime.kernels.abi
from runtime.kernels import table
from runtime.kernels.abi import Kernel
from runtime.native.compiler import compile_family, kernels_of
from runtime.native.errors import KernelCompileError
from runtime.native.kernel_library import kernel_library
from runtime.native.object_file import undefined_symbols
from runtime.native.target import Target, host_target

TARGETS = [
    host_target(),
    Target("x86_64-unknown-linux-gnu", "x86-64", ""),
    Target("aarch64-linux-android", "cortex-a76", "+neon,+dotprod"),
    Target("arm64-apple-darwin", "apple-m1", ""),
    Target("wasm32-unknown-unknown", "generic", "+simd128"),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.triple}-{t.cpu}")
@pytest.mark.parametrize("family", ["tests.support.probe_kernels", "runtime.native.walker"])
def test_families_compile_for_every_target_without_external_symbols(family, target):
    code, exports = compile_family(family, target)
    assert exports == list(kernels_of(family))
    assert undefined_symbols(code) == []


def kernel_families():
    """The modules of runtime/kernels that define kernels themselves."""
    folder = Path(runtime.kernels.abi.__file__).parent
    names = [f"runtime.kernels.{path.stem}" for path in sorted(folder.glob("*.py"))]
    return [n for n in names if any(isinstance(v, Kernel) for v in vars(importlib.import_module(n)).values())]


def test_all_kernels_compile_here():
    """What this process runs has no external symbols, or the compiler would have refused it."""
    families = kernel_families()
    symbols = kernel_library().load(families)
    assert len(families) > 15
    assert set(symbols) == {symbol for family in families for symbol in kernels_of(family)}
    assert all(symbols.values())


def test_table_names_kernels_that_exist():
    for kernel in table.KERNELS.values():
        assert kernel.symbol in kernels_of(kernel.family)
    for module in set(table.LOWERINGS.values()):
        assert callable(importlib.import_module(f"runtime.lowering.{module}").lower)


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS[1:], ids=lambda t: f"{t.triple}-{t.cpu}")
@pytest.mark.parametrize("family", kernel_families())
def test_all_kernels_compile_for_other_targets(family, target):
    code, _ = compile_family(family, target)
    assert undefined_symbols(code) == []


def test_a_kernel_that_calls_the_c_library_is_refused():
    with pytest.raises(KernelCompileError, match=r"xnn_calls_libm .* call symbols from outside: exp;"):
        compile_family("tests.support.calling_kernels", host_target())


def test_a_module_without_kernels_is_refused():
    with pytest.raises(KernelCompileError, match="defines no kernel"):
        compile_family("runtime.kernels.parameters", host_target())


@pytest.mark.parametrize("name", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"])
def test_the_cpu_may_be_overridden(monkeypatch, name):
    monkeypatch.delenv("XNN_ISA", raising=False)
    monkeypatch.setenv(name, "generic" if name == "NUMBA_CPU_NAME" else "+sse2,-avx")
    target = host_target.__wrapped__()  # not what this process settled on
    assert target != TARGETS[0]
    assert (
        (target.cpu, target.features) == ("generic", "")
        if name == "NUMBA_CPU_NAME"
        else target.features == "+sse2,-avx"
    )


@pytest.mark.parametrize("triple", ["x86_64-linux", "aarch64-linux", "arm64-apple-darwin", "wasm32-unknown-unknown"])
def test_undefined_symbols_are_found_in_every_format(triple):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = "declare i32 @foreign()\ndefine i32 @own() {\n%r = call i32 @foreign()\nret i32 %r\n}"
    machine = llvm.Target.from_triple(triple).create_target_machine()
    data = machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{text}'))
    assert [name.lstrip("_") for name in undefined_symbols(data)] == ["foreign"]
    with pytest.raises(ValueError):
        undefined_symbols(data[: len(data) // 3] if triple != "wasm32-unknown-unknown" else data[:12])


def test_what_is_no_object_file_is_refused():
    with pytest.raises(ValueError, match="not an object file"):
        undefined_symbols(struct.pack("<4s", b"what"))
