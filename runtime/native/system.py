"""What native code calls of the operating system, as addresses: semaphores to sleep on, and yielding the processor."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, field
from typing import Any


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@dataclass(frozen=True)
class Semaphore:
    """A counting semaphore that starts at 0; `memory` keeps it alive."""

    handle: int
    memory: Any = field(repr=False)


@dataclass(frozen=True)
class System:
    """Functions to call as `f(handle, a, b)`: `wait` may return early, `post` lets one waiting thread go on."""

    wait: int
    wait_arguments: tuple[int, int]
    post: int
    post_arguments: tuple[int, int]
    yield_processor: int
    make: Any = field(repr=False)

    def semaphore(self) -> Semaphore:
        return self.make()


def system() -> System:
    """The functions of the operating system this runs on."""
    if sys.platform == "win32":
        return _windows()
    return _darwin() if sys.platform == "darwin" else _posix()


def _posix() -> System:
    library = ctypes.CDLL(None, use_errno=True)

    def make() -> Semaphore:
        memory = (ctypes.c_int64 * 16)()  # sem_t is at most 32 bytes
        if library.sem_init(ctypes.byref(memory), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "sem_init failed")
        return Semaphore(ctypes.addressof(memory), memory)

    wait, post, give_way = library.sem_wait, library.sem_post, library.sched_yield
    return System(_address(wait), (0, 0), _address(post), (0, 0), _address(give_way), make)


def _darwin() -> System:
    library = ctypes.CDLL(None)  # unnamed POSIX semaphores do not work there
    library.dispatch_semaphore_create.restype = ctypes.c_void_p
    library.dispatch_semaphore_create.argtypes = [ctypes.c_long]

    def make() -> Semaphore:
        return Semaphore(library.dispatch_semaphore_create(0), None)

    wait, post = library.dispatch_semaphore_wait, library.dispatch_semaphore_signal
    return System(_address(wait), (-1, 0), _address(post), (0, 0), _address(library.sched_yield), make)


def _windows() -> System:
    library = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    library.CreateSemaphoreW.restype = ctypes.c_void_p

    def make() -> Semaphore:
        return Semaphore(library.CreateSemaphoreW(None, 0, 2**30, None), None)

    wait, post = library.WaitForSingleObject, library.ReleaseSemaphore
    return System(_address(wait), (0xFFFFFFFF, 0), _address(post), (1, 0), _address(library.SwitchToThread), make)
