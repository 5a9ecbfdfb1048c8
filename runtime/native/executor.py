"""A plan as native records, executed by one native call."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime.native import layout
from runtime.native.kernel_library import kernel_library
from runtime.native.status import Status
from runtime.native.system import system
from runtime.native.worker_pool import (
    CAPACITY,
    WALKER,
    RunBlock,
    WorkerPool,
    aligned_words,
    default_threads,
    fork_count,
    native_function,
    native_function_of_one,
    worker_pool,
)
from schema.errors import ExecutionError

SPINS_BEFORE_YIELD = 1_000  # pauses at a barrier: some tens of microseconds
_MOST_TILES = 2**31 - 1

_REASONS = {
    Status.INTERNAL: "met a case that its author held impossible; please report it with the model",
    Status.INDEX_OUT_OF_RANGE: "met an index outside of the tensor it refers to",
    Status.INVALID_ARGUMENT: "met a value that the op does not allow",
    Status.LIMIT_EXCEEDED: "ran longer than its loop may",
}


@dataclass(frozen=True)
class KernelCall:
    """One kernel over all its tiles.

    kernel: address. params: packed parameter block. tiles: how many the kernel counts, taken `grain` at a time; 0 calls
    nothing. scratch: bytes each worker needs. alive: arrays that the parameters point to. name: what errors call it.
    flag, otherwise, next: if `flag`, an address, holds a zero byte after this call, record `otherwise` is the next one,
    else `next`; None is the one that follows, and -1 (or the length of the plan) ends.
    """

    kernel: int
    params: np.ndarray
    tiles: int
    grain: int = 1
    scratch: int = 0
    alive: Sequence[Any] = field(default=(), repr=False)
    name: str = ""
    next: int | None = None
    flag: int = 0
    otherwise: int | None = None


class NativePlan:
    """Kernel calls that run in their order. `run` may be called by many threads; one runs at a time.

    alone: the calling thread does all the work, however many threads are offered.
    """

    def __init__(self, calls: Sequence[KernelCall], alone: bool = False) -> None:
        symbols = kernel_library().load([WALKER])
        self._walk_alone = native_function_of_one(symbols["xnn_walk_alone"])
        self._walk_together = native_function(symbols["xnn_walk_together"])
        self._calls = tuple(calls)
        self._records = _records(self._calls, symbols["xnn_nothing"])
        self._records_address = int(self._records.ctypes.data)
        # Tiles that can be computed at the same time: more workers than that find nothing to do.
        self._width = 1 if alone else max((-(-call.tiles // call.grain) for call in calls), default=1)
        self._scratch_stride = -(-max((call.scratch for call in calls), default=0) // 128) * 128
        self._system = system()
        self._reset()

    def _reset(self) -> None:
        self._forks = fork_count()
        self._lock = threading.Lock()
        self._workers = 0
        self._scratch = np.zeros(0, np.uint8)
        self._alone = RunBlock()
        self._alone_address = ctypes.c_int64(self._alone.address)
        self._grow_scratch(1)

    def __len__(self) -> int:
        return len(self._calls)

    def run(self, threads: int | None = None, first: int = 0, count: int | None = None) -> int:
        """Execute the plan with up to `threads` workers (None: what this machine offers), this thread included.

        first, count: start at that record and stop after so many. Returns the record that would come next, -1 at the
        end. Raises ExecutionError, naming the call, if a kernel fails.
        """
        if self._forks != fork_count():
            self._reset()  # what remains are the lock and the helpers of the parent process
        if not self._calls or count == 0:
            return first if self._calls else -1
        if first == 0 and count is None and self.is_alone(threads):
            return self.run_alone()
        workers = max(1, min(default_threads() if threads is None else threads, self._width, CAPACITY + 1))
        with self._lock:
            if workers == 1:
                block = RunBlock()
                self._prepare(block)
                self._walk(block, first, count, None, 0)
            else:
                pool = worker_pool()
                pool.ensure(workers - 1)
                self._grow_scratch(workers)
                block = pool.take_block()
                self._prepare(block)
                self._walk(block, first, count, pool, workers - 1)
                pool.return_block(block)
            return self._ended(block)

    def is_alone(self, threads: int | None) -> bool:
        """Whether the calling thread does all the work of a run of so many threads."""
        return bool(self._calls) and (threads == 1 or self._width == 1)

    def run_alone(self) -> int:
        """Execute the whole plan on the calling thread. As little Python as can be: small nets are over in no time."""
        if self._forks != fork_count():
            self._reset()
        with self._lock:
            if self._walk_alone(self._alone_address) == 0:
                return -1
            return self._ended(self._alone)

    def _ended(self, block: RunBlock) -> int:
        """The record that would come next. Raises ExecutionError if a kernel has failed."""
        failure, after = block[layout.RUN_FAILURE], block[layout.RUN_NEXT]
        if failure:
            block[layout.RUN_FAILURE] = 0
            self._raise(failure)
        return after

    def _walk(self, block: RunBlock, first: int, count: int | None, pool: WorkerPool | None, helpers: int) -> None:
        block[layout.RUN_FIRST] = first
        block[layout.RUN_LIMIT] = -1 if count is None else count
        block[layout.RUN_FAILURE] = 0
        block[layout.RUN_NEXT] = -1
        if pool is None:
            self._walk_alone(block.address)
        else:
            self._walk_together(block.address, pool.address, helpers, 0)

    def _grow_scratch(self, workers: int) -> None:
        if workers > self._workers:
            self._workers = workers
            self._scratch = np.empty(self._scratch_stride * workers + layout.CACHE_LINE, np.uint8)
            self._scratch_start = -(-int(self._scratch.ctypes.data) // layout.CACHE_LINE) * layout.CACHE_LINE
            self._prepare(self._alone)

    def _prepare(self, block: RunBlock) -> None:
        block[layout.RUN_RECORDS] = self._records_address
        block[layout.RUN_SCRATCH] = self._scratch_start
        block[layout.RUN_SCRATCH_STRIDE] = self._scratch_stride
        block[layout.RUN_YIELD] = self._system.yield_processor
        block[layout.RUN_SPINS] = SPINS_BEFORE_YIELD
        block[layout.RUN_FIRST] = 0
        block[layout.RUN_LIMIT] = -1

    def _raise(self, failure: int) -> None:
        index, status = (failure >> 32) - 1, failure & 0xFFFFFFFF
        call = self._calls[index]
        try:
            reason = _REASONS[Status(status)]
        except (KeyError, ValueError):
            reason = f"stopped with status {status}"
        raise ExecutionError(f"{call.name or f'call {index} of {len(self)}'}: its kernel {reason}")


def _records(calls: Sequence[KernelCall], nothing: int) -> np.ndarray:
    """The records in memory. Raises ValueError for tiles, grains or successors out of range."""
    words = aligned_words(max(1, len(calls)) * layout.RECORD_BYTES // 8).reshape(-1, layout.RECORD_BYTES // 8)
    for i, call in enumerate(calls):
        after = i + 1 if call.next is None else call.next
        otherwise = i + 1 if call.otherwise is None else call.otherwise
        if not 0 <= call.tiles <= _MOST_TILES or not 1 <= call.grain <= _MOST_TILES:
            raise ValueError(f"{call.name or f'call {i}'}: {call.tiles} tiles, {call.grain} at a time")
        if not -1 <= after <= len(calls) or not -1 <= otherwise <= len(calls):
            raise ValueError(f"{call.name or f'call {i}'}: followed by record {after} or {otherwise}")
        record = words[i]
        record[layout.RECORD_KERNEL // 8] = call.kernel if call.tiles else nothing
        record[layout.RECORD_PARAMS // 8] = call.params.ctypes.data
        record[layout.RECORD_TILES // 8] = max(call.tiles, 1)
        record[layout.RECORD_GRAIN // 8] = call.grain
        record[layout.RECORD_FLAG // 8] = call.flag
        record[layout.RECORD_NEXT // 8] = -1 if after == len(calls) else after
        record[layout.RECORD_OTHERWISE // 8] = -1 if otherwise == len(calls) else otherwise
    return words
