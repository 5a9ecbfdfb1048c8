"""The process's helper threads: started when first needed, asleep without work, gone at exit, rebuilt after fork."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import time

import numpy as np

from runtime.native import layout
from runtime.native.kernel_library import kernel_library
from runtime.native.processors import available_processors
from runtime.native.system import Semaphore, system

WALKER = "runtime.native.walker"

CAPACITY = 255  # helper threads at most
SPINS_BEFORE_SLEEP = 2_000  # pauses; some tens of microseconds, so that a loop of inferences finds its helpers awake

native_function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)
# For functions that look at their first argument alone: ctypes takes 0.6 us for four numbers, 0.2 us for one c_int64.
native_function_of_one = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)
"""A callable for an address with the kernel ABI; calling it releases the interpreter's lock."""


def aligned_words(count: int) -> np.ndarray:
    """`count` int64 zeros that start on a pair of cache lines (which prefetchers fetch together)."""
    raw = np.zeros(count + 2 * layout.CACHE_LINE // 8, np.int64)
    start = -raw.ctypes.data % (2 * layout.CACHE_LINE) // 8
    return raw[start : start + count]


class RunBlock:
    """The memory through which the workers of one run talk (see runtime.native.layout)."""

    def __init__(self) -> None:
        words = aligned_words((layout.RUN_TICKETS + (CAPACITY + 1) * layout.CACHE_LINE) // 8)
        words[layout.RUN_TICKETS // 8 :] = layout.TAKEN
        self.address = int(words.ctypes.data)
        self.words = memoryview(words)  # an item costs a third of an array's

    def __getitem__(self, offset: int) -> int:
        return self.words[offset >> 3]

    def __setitem__(self, offset: int, value: int) -> None:
        self.words[offset >> 3] = value


class WorkerPool:
    """Helpers for the runs of all plans of a process. A run asks for helpers and gets those that are idle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._semaphores: list[Semaphore] = []
        self._system = system()
        words = aligned_words((layout.POOL_SLOTS + CAPACITY * layout.SLOT_BYTES) // 8)
        words[layout.POOL_WAIT // 8] = self._system.wait
        words[layout.POOL_WAIT_A // 8], words[layout.POOL_WAIT_B // 8] = self._system.wait_arguments
        words[layout.POOL_POST // 8] = self._system.post
        words[layout.POOL_POST_A // 8], words[layout.POOL_POST_B // 8] = self._system.post_arguments
        words[layout.POOL_SPINS // 8] = SPINS_BEFORE_SLEEP
        self._words = words
        self._slots = [
            words[(layout.POOL_SLOTS + i * layout.SLOT_BYTES) // 8 :][: layout.SLOT_BYTES // 8] for i in range(CAPACITY)
        ]
        for slot in self._slots:
            slot[layout.SLOT_JOB // 8] = layout.JOB_ABSENT
        self.address = int(words.ctypes.data)
        self._closed = False
        self._blocks: list[RunBlock] = []

    @property
    def size(self) -> int:
        """Helper threads that exist."""
        return len(self._threads)

    def take_block(self) -> RunBlock:
        """A block for a run; give it back with `return_block`.

        Blocks are never freed: a helper that wakes up too late still looks at the block of a run that has ended. Such a
        block is not handed out again until the helper has left it.
        """
        with self._lock:
            for i, block in enumerate(self._blocks):
                if block[layout.RUN_ACTIVE] == 0:
                    return self._blocks.pop(i)
        return RunBlock()

    def return_block(self, block: RunBlock) -> None:
        """The run has ended; the block may be used for another."""
        with self._lock:
            self._blocks.append(block)

    def ensure(self, helpers: int) -> None:
        """Start threads until there are `helpers` of them (or CAPACITY)."""
        helpers = min(helpers, CAPACITY)
        if len(self._threads) >= helpers:
            return
        with self._lock:
            if self._closed:
                return
            serve = native_function(kernel_library().load([WALKER])["xnn_serve"])
            while len(self._threads) < helpers:
                i = len(self._threads)
                semaphore = self._system.semaphore()
                slot = self._slots[i]
                slot[layout.SLOT_SEMAPHORE // 8] = semaphore.handle
                # A daemon: the interpreter waits for other threads before it would call `close`.
                thread = threading.Thread(
                    target=serve, args=(self.address, slot.ctypes.data, 0, 0), name=f"xnn-worker-{i + 1}", daemon=True
                )
                thread.start()
                self._semaphores.append(semaphore)
                self._threads.append(thread)
                slot[layout.SLOT_JOB // 8] = layout.JOB_NONE
                self._words[layout.POOL_CAPACITY // 8] = i + 1

    def close(self, timeout: float = 1.0) -> None:
        """Stop the threads and wait for them; at most `timeout` seconds if a run of another thread goes on."""
        with self._lock:
            self._closed = True
            end = time.monotonic() + timeout
            stop = native_function(kernel_library().load([WALKER])["xnn_dismiss"]) if self._threads else None
            for slot, thread in zip(self._slots, self._threads, strict=False):
                while stop is not None and thread.is_alive() and time.monotonic() < end:
                    if stop(self.address, slot.ctypes.data, 0, 0):
                        thread.join(max(0.0, end - time.monotonic()))
                        break
                    time.sleep(0.001)
            self._threads.clear()


class _Process:
    """The pool of this process. A child made by fork has no threads but its own, so it starts over."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: WorkerPool | None = None
        self.forks = 0

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        self.pool = None
        self.forks += 1


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.after_fork)


def worker_pool() -> WorkerPool:
    """The one pool of this process."""
    pool = _process.pool
    if pool is None:
        with _process.lock:
            pool = _process.pool
            if pool is None:
                pool = _process.pool = WorkerPool()
    return pool


def fork_count() -> int:
    """How many forks lie between this process and the one that imported this module."""
    return _process.forks


@functools.cache
def default_threads() -> int:
    """Workers of one run unless the caller says otherwise."""
    return available_processors()


@atexit.register
def _close_pool() -> None:
    if _process.pool is not None:
        _process.pool.close()
