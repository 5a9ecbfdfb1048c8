"""From the name of a kernel family to addresses of callable machine code: cache, compiler and loader in one place."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from runtime.native.errors import KernelCompileError
from runtime.native.object_cache import KernelObject, ObjectCache
from runtime.native.target import Target, create_target_machine, host_target

_PACKAGE = Path(__file__).resolve().parents[1]
_COMPILER = "runtime.native.compiler"
_IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+(runtime[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(runtime[\w.]*))", re.M
)

Progress = Callable[[str], None]


def _print_progress(line: str) -> None:
    from absl import logging  # not at the top: only what compiles waits for it

    if logging.get_verbosity() >= logging.WARNING:
        print(f"xnn: {line}", file=sys.stderr, flush=True)


class KernelLibrary:
    """Kernels of this process, loaded by family on demand and kept for its lifetime. Thread-safe.

    `progress` is called with a line of text when a family has to be compiled, which takes seconds; by default the line
    goes to stderr, unless absl's verbosity is below WARNING.
    """

    def __init__(
        self, target: Target | None = None, cache: ObjectCache | None = None, progress: Progress = _print_progress
    ) -> None:
        self.target = target if target is not None else host_target()
        self._cache = cache if cache is not None else ObjectCache()
        self._progress = progress
        self._lock = threading.RLock()
        self._linker: llvm.orcjit.LLJIT | None = None
        self._loaded: dict[str, dict[str, int]] = {}
        self._keep_alive: list[llvm.orcjit.ResourceTracker] = []  # dropping one would unload its code

    def load(self, families: Iterable[str]) -> dict[str, int]:
        """Addresses of all kernels of `families` (names of modules), by symbol.

        Compiles what is not in the cache. Raises KernelCompileError, also where numba would be needed and is missing.
        """
        with self._lock:
            families = dict.fromkeys(families)
            missing = [family for family in families if family not in self._loaded]
            objects = {family: self._cache.load(cache_key(family, self.target)) for family in missing}
            cold = [family for family, item in objects.items() if item is None]
            for family, item in objects.items():
                if item is None:
                    place = f"{cold.index(family) + 1} of {len(cold)}"
                    self._progress(f"compiling kernels for {self.target.cpu}, once: {family} ({place})")
                    item = self._compile(family)
                self._loaded[family] = self._link(family, item)
            return {symbol: address for family in families for symbol, address in self._loaded[family].items()}

    def _compile(self, family: str) -> KernelObject:
        try:
            from runtime.native.compiler import compile_family
        except ImportError as error:
            raise KernelCompileError(
                f"{family} has to be compiled once for this CPU, which needs numba ({error}): install it, or set "
                f"XNN_CACHE to a folder with kernels compiled on such a machine"
            ) from error
        start = time.perf_counter()
        code, exports = compile_family(family, self.target)
        item = KernelObject(tuple(exports), code)
        self._cache.store(cache_key(family, self.target), item)
        self._progress(f"compiled {family} in {time.perf_counter() - start:.1f} s")
        return item

    def _link(self, family: str, item: KernelObject) -> dict[str, int]:
        if self._linker is None:
            # JITLink puts the sections of an object side by side. RuntimeDyld, the default, maps code and constants
            # where there is room; in a full address space that is too far apart for 32-bit offsets, and LLVM aborts.
            self._linker = llvm.create_lljit_compiler(create_target_machine(self.target), use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_object_img(item.code)
        for symbol in item.exports:
            builder.export_symbol(symbol)
        tracker = builder.link(self._linker, family)
        self._keep_alive.append(tracker)
        return {symbol: tracker[symbol] for symbol in item.exports}


@functools.cache
def kernel_library() -> KernelLibrary:
    """The kernels for this machine, shared by the whole process."""
    return KernelLibrary()


def cache_key(family: str, target: Target) -> str:
    """Name of the cache file for `family`: its short name and a digest of all that its object code depends on."""
    digest = hashlib.sha256()
    for part in (family, target.triple, target.cpu, target.features, *_versions()):
        digest.update(f"{part}\n".encode())
    for path in source_files(family):
        digest.update(_content(path))
    return f"{family.rpartition('.')[2]}-{digest.hexdigest()[:32]}"


def source_files(family: str) -> list[Path]:
    """The files of `family`, of the compiler, and of all modules of this package that either imports; sorted."""
    found: dict[str, Path] = {}
    queue = [family, _COMPILER]
    while queue:
        module = queue.pop()
        path = _module_file(module)
        if path is not None and module not in found:
            found[module] = path
            queue += _imports(path)
    return sorted(found.values())


@functools.cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    modules = []
    for source, names, plain in _IMPORTS.findall(_content(path).decode()):
        modules.append(source or plain)
        modules += [f"{source}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names)]
    return tuple(modules)


@functools.cache
def _module_file(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first == _PACKAGE.name:
        path = _PACKAGE.joinpath(*rest)
        candidates = [path.with_suffix(".py")] if rest else []
        candidates.append(path / "__init__.py")
        return next((candidate for candidate in candidates if candidate.is_file()), None)
    specification = importlib.util.find_spec(module)
    return Path(specification.origin) if specification is not None and specification.origin else None


@functools.cache
def _versions() -> tuple[str, ...]:
    return f"numba {_numba_version()}", f"llvmlite {llvmlite.__version__}", f"numpy {np.__version__}"


def _numba_version() -> str:
    # Neither importing numba nor reading its distribution's metadata (importlib.metadata takes 20 ms) is cheap enough.
    specification = importlib.util.find_spec("numba")
    if specification is None or specification.origin is None:
        return "absent"
    text = Path(specification.origin).with_name("_version.py").read_text()
    found = re.search(r'"version": "([^"]+)"', text)
    if found is None:
        from importlib.metadata import version

        return version("numba")
    return found.group(1)
