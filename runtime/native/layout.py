"""Where the executor's native code finds things in memory: byte offsets, shared with the Python side.

Words are int64. What workers write is kept on cache lines of its own.
"""

from __future__ import annotations

CACHE_LINE = 64

# A record of a plan: one kernel over all its tiles, then the next record. Where FLAG is the address of a byte in the
# arena, the record after is NEXT if the byte is not 0 and OTHERWISE if it is.
RECORD_KERNEL = 0
RECORD_PARAMS = 8
RECORD_TILES = 16
RECORD_GRAIN = 24  # tiles taken at a time, or a multiple of that
RECORD_FLAG = 32
RECORD_NEXT = 40  # -1 ends
RECORD_OTHERWISE = 48
RECORD_BYTES = 64

# A run of a plan.
RUN_RECORDS = 0
RUN_FIRST = 8
RUN_LIMIT = 16  # records to execute; -1 for all
RUN_SCRATCH = 24
RUN_SCRATCH_STRIDE = 32  # bytes per worker
RUN_YIELD = 40  # address of sched_yield
RUN_SPINS = 48  # pauses before yielding
RUN_SHARES = (
    56  # into which the tiles of a visit are divided: one for each worker; a visit is one execution of a record
)
RUN_DONE = 128  # tiles of this visit that are finished
RUN_CURRENT = 192  # record of an even visit, of an odd visit
RUN_FAILURE = 208  # 0, or (record + 1) << 32 | status
RUN_NEXT = 216  # where a limited run stopped
RUN_ENDED = 224  # whether no visit is left
RUN_ACTIVE = 256  # helpers that may still look at this block
RUN_TICKETS = 320  # of each share, a cache line apart: (visit << 32) | next tile, or | TAKEN where none is left

TAKEN = 0xFFFFFFFF

# The pool: how to wait and to wake, then one slot per helper.
POOL_CAPACITY = 0
POOL_WAIT = 8  # wait(semaphore, a, b)
POOL_WAIT_A = 16
POOL_WAIT_B = 24
POOL_POST = 32  # post(semaphore, a, b)
POOL_POST_A = 40
POOL_POST_B = 48
POOL_SPINS = 56  # pauses before a helper without work goes to sleep
POOL_SLOTS = 128

SLOT_JOB = 0  # address of a run, or one of JOB_*
SLOT_WORKER = 8  # number of the helper within the run; the caller is worker 0
SLOT_ASLEEP = 64
SLOT_SEMAPHORE = 72
SLOT_BYTES = 128

JOB_NONE = 0
JOB_CLAIMED = 1  # a run is being written into the slot
JOB_STOP = 2
JOB_ABSENT = 3  # no thread serves the slot
JOB_FIRST_ADDRESS = 4096
