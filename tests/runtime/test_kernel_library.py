import importlib
import logging
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import absl.logging
import numpy as np
import pytest

import runtime.kernels
from runtime.kernels.abi import Kernel
from runtime.kernels.table import find_kernel
from runtime.native.errors import KernelCompileError
from runtime.native.kernel_library import KernelLibrary, cache_key, source_files
from runtime.native.object_cache import KernelObject, ObjectCache, default_cache_folder, pack_object, unpack_object
from runtime.native.target import Target, host_target
from runtime.native.worker_pool import native_function
from tests.support.probe_parameters import PROBE

FAMILY = "tests.support.probe_kernels"
ROOT = Path(__file__).parents[2]

SCRIPT = f"""
import sys
import numpy as np
from runtime.native.errors import KernelCompileError
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import native_function
from tests.support.probe_parameters import PROBE
address = kernel_library().load(["{FAMILY}"])["xnn_probe_scale"]
x = np.arange(8, dtype=np.float32)
y = np.zeros(8, np.float32)
params = PROBE.pack(dict(source=x.ctypes.data, target=y.ctypes.data, row=4, scale=2.0))
assert native_function(address)(params.ctypes.data, 0, 2, 0) == 0
assert (y == 2 * x + 1).all(), y
print("numba" in sys.modules)
"""


def run_script(cache: Path | None, wait: bool = True, **variables: str):
    environment = {**os.environ, **variables}
    environment.pop("XNN_CACHE", None)
    if cache is not None:
        environment["XNN_CACHE"] = str(cache)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return finish(process) if wait else process


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip() == "True", err


def scale_on(library: KernelLibrary) -> None:
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    params = PROBE.pack({"source": x.ctypes.data, "target": y.ctypes.data, "row": 4, "scale": 3.0})
    assert native_function(library.load([FAMILY])["xnn_probe_scale"])(params.ctypes.data, 0, 1, 0) == 0
    np.testing.assert_array_equal(y, 3 * x + 1)


def test_cold_then_warm_process_and_two_racing_ones(tmp_path):
    racing = [run_script(tmp_path / "cache", wait=False) for _ in range(2)]
    for process in racing:
        used_numba, err = finish(process)
        assert used_numba
        assert "compiling kernels" in err
    used_numba, err = run_script(tmp_path / "cache")
    assert not used_numba
    assert err == ""
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".xnnobj"]


@pytest.mark.parametrize(("verbosity", "lines"), [("INFO", 2), ("WARNING", 2), ("ERROR", 0)])
def test_absl_says_how_much_is_printed(tmp_path, capsys, verbosity, lines):
    before = absl.logging.get_verbosity()
    absl.logging.set_verbosity(getattr(absl.logging, verbosity))
    try:
        scale_on(KernelLibrary(cache=ObjectCache(tmp_path)))
    finally:
        absl.logging.set_verbosity(before)
    assert capsys.readouterr().err.count("xnn: compil") == lines


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
def test_a_damaged_file_is_compiled_again(tmp_path, damage):
    messages = []
    scale_on(KernelLibrary(cache=ObjectCache(tmp_path), progress=messages.append))
    assert len(messages) == 2
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    path.write_bytes(
        {
            "truncated": data[:-100],
            "flipped": data[:200] + bytes([data[200] ^ 1]) + data[201:],
            "empty": b"",
            "foreign": b"\x7fELF" + data,
        }[damage]
    )
    scale_on(KernelLibrary(cache=ObjectCache(tmp_path), progress=messages.append))
    assert len(messages) == 4
    assert path.read_bytes()[:8] == data[:8]
    scale_on(KernelLibrary(cache=ObjectCache(tmp_path), progress=messages.append))
    assert len(messages) == 4


def test_a_folder_that_cannot_be_written_costs_one_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    cache = ObjectCache(tmp_path / "file" / "kernels")
    with caplog.at_level(logging.WARNING, "absl"):
        scale_on(KernelLibrary(cache=cache, progress=lambda line: None))
        cache.store("another", KernelObject(("a",), b""))
    assert len(caplog.records) == 1
    assert "XNN_CACHE" in caplog.text


def test_a_home_that_cannot_be_written(tmp_path):
    """No folder can be made in it: not even root makes one below a file."""
    (tmp_path / "home").write_text("")
    used_numba, err = run_script(None, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="")
    assert used_numba
    assert err.count("set XNN_CACHE to a writable folder") == 1
    assert (tmp_path / "home").read_text() == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    _, err = run_script(tmp_path / "cache")
    assert "set XNN_CACHE to a writable folder" in err
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_process_that_ends_while_it_writes_leaves_no_broken_kernel(tmp_path):
    """Half of a file is never under the name that others read."""
    (tmp_path / ".half.tmp").write_bytes(pack_object(KernelObject(("xnn_probe_scale",), b"code"))[:40])
    used_numba, _ = run_script(tmp_path)
    assert used_numba
    used_numba, err = run_script(tmp_path)
    assert (used_numba, err) == (False, "")


def test_failed_writes_leave_nothing_behind(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    ObjectCache(tmp_path).store("key", KernelObject(("a",), b"code"))
    assert list(tmp_path.iterdir()) == []


def test_without_numba_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "runtime.native.compiler", None)
    with pytest.raises(KernelCompileError, match=r"needs numba .* XNN_CACHE"):
        KernelLibrary(cache=ObjectCache(tmp_path), progress=lambda line: None).load([FAMILY])


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("XNN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_cache_folder() == Path("/home/someone/.cache/xnn/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_cache_folder() == Path("/caches/xnn/kernels")
    monkeypatch.setenv("XNN_CACHE", "/mine")
    assert default_cache_folder() == Path("/mine")


def test_cache_files_round_trip():
    item = KernelObject(("xnn_a", "xnn_b"), bytes(range(256)))
    data = pack_object(item)
    assert unpack_object(data) == item
    for size in range(0, len(data), 16):
        assert unpack_object(data[:size]) is None


def test_the_key_depends_on_sources_target_and_family():
    host = host_target()
    keys = {
        cache_key(family, target)
        for family in (FAMILY, "runtime.native.walker")
        for target in (host, Target(host.triple, "generic", host.features), Target(host.triple, host.cpu, ""))
    }
    assert len(keys) == 6


def test_kernels_have_names_of_their_own():
    """They are found by name in a plan, whatever families it has: of two of one name it would run one for both."""
    families: dict[str, list[str]] = {}
    for module in pkgutil.iter_modules(runtime.kernels.__path__):
        for name, value in vars(importlib.import_module(f"runtime.kernels.{module.name}")).items():
            if isinstance(value, Kernel):
                families.setdefault(name, []).append(module.name)
    assert len(families) > 50
    assert not {name: owners for name, owners in families.items() if len(owners) > 1}


def test_source_files_are_all_that_a_family_and_the_compiler_import():
    names = {path.relative_to(ROOT).as_posix() for path in source_files("runtime.native.walker")}
    assert {"runtime/native/walker.py", "runtime/native/layout.py", "runtime/native/atomics.py"} <= names
    assert {"runtime/kernels/abi.py", "runtime/kernels/parameters.py", "runtime/native/compiler.py"} <= names
    assert "tests/support/probe_kernels.py" in {p.relative_to(ROOT).as_posix() for p in source_files(FAMILY)}


# Holes of 16 KB high up and no other room for gigabytes: what is larger than a hole lies far from what fits into one.
FAR_APART = """
import mmap, sys
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
small = [mmap.mmap(-1, 16384, flags) for _ in range(2000)]
large = mmap.mmap(-1, 6 << 30, flags, mmap.PROT_READ)
for part in small[::2]:
    part.close()
from runtime.native.kernel_library import kernel_library
families = ["matmul_f32_12x32", "pooling_f32"] if len(sys.argv) > 1 else ["matmul_f32_6x16", "pooling_f32"]
kernel_library().load([f"runtime.kernels.{family}" for family in families])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems place mappings differently")
def test_code_and_constants_need_no_room_side_by_side():
    """RuntimeDyld aborts the process here: "Assertion `isInt<32>(RealOffset)' failed"."""
    wide = ["wide"] if find_kernel("depthwise_3x3", "float32") else []
    done = subprocess.run(
        [sys.executable, "-c", FAR_APART, *wide], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
