"""The executor's native code: plans are walked by one or more workers that know nothing of the kernels.

With several workers a record is executed as a *visit*. Its tiles are divided into shares, one for each worker: tiles
that follow each other, so that a worker finds in its own cache most of what it made of the tensors before. Workers take
tiles by advancing a share's ticket: of their own share all but an eighth, since kernels begin with work that tiles
share, then that eighth, then half of what is left of other shares, again and again. They count what they have finished;
whoever finishes the last tile opens the next visit. Nobody waits for a worker that has not arrived: a helper may join
in the middle of a run or come too late, and a run never depends on how many there are.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i64, inline, kernel, truncated_divide, u8
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
def end_of_share(units, grain, tiles, shares, share):
    """The tile after the last one of a share; `units` times `grain` tiles are divided."""
    return min(truncated_divide(units * (share + 1), shares) * grain, tiles)


@inline
def ticket_of(run, share):
    return run + layout.RUN_TICKETS + layout.CACHE_LINE * share


@inline
def open_visit(run, visit, index, worker):
    """Make record `index` (-1: the end) the work of `visit`. Only the worker that ended the visit before may.

    Shares without tiles are left as they are: all others are open before the visit can end, so that nobody is still
    opening it then.
    """
    i64(run + layout.RUN_DONE)[0] = 0
    i64(run + layout.RUN_CURRENT + 8 * (visit & 1))[0] = index
    if index < 0:
        store_release(run + layout.RUN_ENDED, 1)
        return
    record = word(run + layout.RUN_RECORDS) + layout.RECORD_BYTES * index
    tiles, grain, shares = (
        word(record + layout.RECORD_TILES),
        word(record + layout.RECORD_GRAIN),
        word(run + layout.RUN_SHARES),
    )
    units = truncated_divide(tiles + grain - 1, grain)
    if units == 1:  # it is here already
        store_release(ticket_of(run, worker), visit << 32)
        return
    first = int64(0)
    for share in range(shares):
        end = end_of_share(units, grain, tiles, shares, share)
        if first < end:
            store_release(ticket_of(run, share), visit << 32 | first)
        first = end


@inline
def close_visit(run, visit, index, worker):
    """All tiles of record `index` are finished: go on to its successor."""
    after = successor(word(run + layout.RUN_RECORDS) + layout.RECORD_BYTES * index)
    if word(run + layout.RUN_LIMIT) == visit or load_acquire(run + layout.RUN_FAILURE) != 0:
        i64(run + layout.RUN_NEXT)[0] = after
        after = int64(-1)
    open_visit(run, visit + 1, after, worker)


@inline
def participate(run, worker):
    """Take tiles until the run has ended."""
    records = word(run + layout.RUN_RECORDS)
    scratch = word(run + layout.RUN_SCRATCH) + worker * word(run + layout.RUN_SCRATCH_STRIDE)
    spins, shares = word(run + layout.RUN_SPINS), word(run + layout.RUN_SHARES)
    waited = looked = int64(0)
    share = worker
    while True:
        ticket = load_acquire(ticket_of(run, share))
        tile = ticket & layout.TAKEN
        if tile == layout.TAKEN:
            looked += 1
            share = share + 1 if share + 1 < shares else int64(0)
            if looked < shares:
                continue
            looked, share = int64(0), worker
            if load_acquire(run + layout.RUN_ENDED) != 0:
                return
            waited += 1
            if waited <= spins:
                pause()
            else:
                call_system(word(run + layout.RUN_YIELD), 0, 0, 0)
            continue
        # If the ticket moves on in the meantime the record read here may be another one, but then the exchange fails.
        visit = ticket >> 32
        index = load_acquire(run + layout.RUN_CURRENT + 8 * (visit & 1))
        if index < 0:
            continue
        record = records + layout.RECORD_BYTES * index
        tiles, grain = word(record + layout.RECORD_TILES), word(record + layout.RECORD_GRAIN)
        units = truncated_divide(tiles + grain - 1, grain)
        last = tiles if units == 1 else end_of_share(units, grain, tiles, shares, share)
        rest = last - tile
        wanted = rest >> 1
        if share == worker:
            kept = truncated_divide(tiles, shares) >> 3
            wanted = rest - kept if rest > kept else rest
        end = min(tile + max(truncated_divide(wanted, grain), int64(1)) * grain, last)
        if not compare_exchange(ticket_of(run, share), ticket, visit << 32 | (end if end < last else layout.TAKEN)):
            continue
        waited = looked = int64(0)
        share = worker
        if load_acquire(run + layout.RUN_FAILURE) == 0:
            status = call_kernel(
                word(record + layout.RECORD_KERNEL), word(record + layout.RECORD_PARAMS), tile, end, scratch
            )
            if status != 0:
                compare_exchange(run + layout.RUN_FAILURE, 0, failure_code(index, status))
        if fetch_add(run + layout.RUN_DONE, end - tile) + end - tile == tiles:
            close_visit(run, visit, index, worker)


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
    i64(run + layout.RUN_SHARES)[0] = helpers + 1
    i64(run + layout.RUN_ENDED)[0] = 0
    # Visits count from 1, so that RUN_LIMIT, the number of records to execute, is that of the last visit.
    open_visit(run, int64(1), word(run + layout.RUN_FIRST), int64(0))
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
