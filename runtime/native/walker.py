"""The executor's native code: plans are walked by one or more workers that know nothing of the kernels.

With several workers a record is executed as a *visit*. Workers take tiles by advancing the ticket and count what they
have finished; whoever finishes the last tile opens the next visit. Nobody waits for a worker that has not arrived: a
helper may join in the middle of a run or come too late, and a run never depends on how many there are.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i64, inline, kernel, u8
from runtime.native import layout
from runtime.native.atomics import (
    call_kernel,
    call_system,
    compare_exchange,
    exchange,
    fetch_add,
    load_acquire,
    pause,
    store_release,
)

_LOW = 0xFFFFFFFF


@inline
def word(address):
    return i64(address)[0]


@inline
def successor(record):
    flag = word(record + layout.RECORD_FLAG)
    if flag != 0 and u8(flag)[0] == 0:
        return word(record + layout.RECORD_OTHERWISE)
    return word(record + layout.RECORD_NEXT)


@inline
def failure_code(index, status):
    return (index + 1) << 32 | (int64(status) & _LOW)


@kernel
def walk_alone(run, unused_1, unused_2, unused_3):
    """Execute a run on the calling thread. No atomic operation, no barrier."""
    records = word(run + layout.RUN_RECORDS)
    scratch = word(run + layout.RUN_SCRATCH)
    limit = word(run + layout.RUN_LIMIT)
    index = word(run + layout.RUN_FIRST)
    while index >= 0 and limit != 0:
        record = records + layout.RECORD_BYTES * index
        status = call_kernel(
            word(record + layout.RECORD_KERNEL),
            word(record + layout.RECORD_PARAMS),
            0,
            word(record + layout.RECORD_TILES),
            scratch,
        )
        if status != 0:
            i64(run + layout.RUN_FAILURE)[0] = failure_code(index, status)
            return status
        index = successor(record)
        limit -= 1
    i64(run + layout.RUN_NEXT)[0] = index
    return 0


@inline
def open_visit(run, visit, index):
    """Make record `index` (-1: the end) the work of `visit`. Only the worker that ended the visit before may."""
    i64(run + layout.RUN_DONE)[0] = 0
    i64(run + layout.RUN_CURRENT + 8 * (visit & 1))[0] = index
    store_release(run + layout.RUN_TICKET, visit << 32)


@inline
def close_visit(run, visit, index):
    """All tiles of record `index` are finished: go on to its successor."""
    after = successor(word(run + layout.RUN_RECORDS) + layout.RECORD_BYTES * index)
    if word(run + layout.RUN_LIMIT) == visit or load_acquire(run + layout.RUN_FAILURE) != 0:
        i64(run + layout.RUN_NEXT)[0] = after
        after = int64(-1)
    open_visit(run, visit + 1, after)


@inline
def participate(run, worker):
    """Take tiles until the run has ended."""
    records = word(run + layout.RUN_RECORDS)
    scratch = word(run + layout.RUN_SCRATCH) + worker * word(run + layout.RUN_SCRATCH_STRIDE)
    spins = word(run + layout.RUN_SPINS)
    ticket_at = run + layout.RUN_TICKET
    waited = int64(0)
    while True:
        ticket = load_acquire(ticket_at)
        visit = ticket >> 32
        tile = ticket & _LOW
        # If the ticket moves on in the meantime the record read here may be another one, but then the exchange fails.
        index = load_acquire(run + layout.RUN_CURRENT + 8 * (visit & 1))
        if index < 0:
            return
        record = records + layout.RECORD_BYTES * index
        tiles = word(record + layout.RECORD_TILES)
        if tile >= tiles:
            waited += 1
            if waited <= spins:
                pause()
            else:
                call_system(word(run + layout.RUN_YIELD), 0, 0, 0)
            continue
        end = min(tile + word(record + layout.RECORD_GRAIN), tiles)
        if not compare_exchange(ticket_at, ticket, visit << 32 | end):
            continue
        waited = int64(0)
        if load_acquire(run + layout.RUN_FAILURE) == 0:
            status = call_kernel(
                word(record + layout.RECORD_KERNEL), word(record + layout.RECORD_PARAMS), tile, end, scratch
            )
            if status != 0:
                compare_exchange(run + layout.RUN_FAILURE, 0, failure_code(index, status))
        if fetch_add(run + layout.RUN_DONE, end - tile) + end - tile == tiles:
            close_visit(run, visit, index)


@inline
def wake(pool, slot):
    if exchange(slot + layout.SLOT_ASLEEP, 0) != 0:
        call_system(
            word(pool + layout.POOL_POST),
            word(slot + layout.SLOT_SEMAPHORE),
            word(pool + layout.POOL_POST_A),
            word(pool + layout.POOL_POST_B),
        )


@inline
def call_helpers(run, pool, wanted):
    """Hand the run to at most `wanted` helpers that have nothing to do."""
    called = int64(0)
    for i in range(word(pool + layout.POOL_CAPACITY)):
        if called == wanted:
            return
        slot = pool + layout.POOL_SLOTS + layout.SLOT_BYTES * i
        if not compare_exchange(slot + layout.SLOT_JOB, layout.JOB_NONE, layout.JOB_CLAIMED):
            continue
        called += 1
        fetch_add(run + layout.RUN_ACTIVE, 1)
        i64(slot + layout.SLOT_WORKER)[0] = called
        exchange(slot + layout.SLOT_JOB, run)
        wake(pool, slot)


@kernel
def walk_together(run, pool, helpers, unused):
    """Execute a run on the calling thread with up to `helpers` workers of the pool."""
    # Visits count from 1, so that RUN_LIMIT, the number of records to execute, is that of the last visit.
    open_visit(run, int64(1), word(run + layout.RUN_FIRST))
    call_helpers(run, pool, helpers)
    participate(run, int64(0))
    return load_acquire(run + layout.RUN_FAILURE) & _LOW


@kernel
def serve(pool, slot, unused_1, unused_2):
    """The life of a helper thread: wait for runs, take part in them, return when told to stop."""
    spins = word(pool + layout.POOL_SPINS)
    waited = int64(0)
    while True:
        job = load_acquire(slot + layout.SLOT_JOB)
        if job == layout.JOB_STOP:
            return 0
        if job >= layout.JOB_FIRST_ADDRESS:
            participate(job, word(slot + layout.SLOT_WORKER))
            store_release(slot + layout.SLOT_JOB, layout.JOB_NONE)
            fetch_add(job + layout.RUN_ACTIVE, -1)
            waited = int64(0)
        elif waited < spins:
            waited += 1
            pause()
        else:
            # Announce sleep, look once more, sleep: whoever hands over a job does both in the other order.
            exchange(slot + layout.SLOT_ASLEEP, 1)
            if fetch_add(slot + layout.SLOT_JOB, 0) == layout.JOB_NONE:  # sequentially consistent, unlike a load
                call_system(
                    word(pool + layout.POOL_WAIT),
                    word(slot + layout.SLOT_SEMAPHORE),
                    word(pool + layout.POOL_WAIT_A),
                    word(pool + layout.POOL_WAIT_B),
                )
            exchange(slot + layout.SLOT_ASLEEP, 0)
            waited = int64(0)


@kernel
def dismiss(pool, slot, unused_1, unused_2):
    """Tell an idle helper to end; gives 1 if it will, 0 if it is busy."""
    if not compare_exchange(slot + layout.SLOT_JOB, layout.JOB_NONE, layout.JOB_STOP):
        return 0
    wake(pool, slot)
    return 1


@kernel
def nothing(params, begin, end, scratch):
    """The kernel of a record without work."""
    return 0
