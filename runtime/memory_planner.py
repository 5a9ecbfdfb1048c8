"""Offsets for buffers that live for part of a plan, so that all of them fit in one small arena.

Stand-alone: it knows sizes and lives, nothing of tensors or kernels. Greedy by size with best fit: the largest buffer
is placed first, each in the smallest gap that holds it between the buffers already placed that live at the same time
(Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, algorithm 3). Where the arena is
then larger than what lives at once, a short search changes the order in which buffers are placed.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64

_SEARCH_STEPS = 100
_SEARCH_BUDGET = 20_000  # blocks placed, so that a large plan is not kept waiting


@dataclass(frozen=True)
class Request:
    """A buffer of `size` bytes, alive from step `first` to step `last`, both included.

    in_place: indices of requests whose memory this one may take over: they are last read in the step that first writes
    this buffer, by a kernel that reads each element before it writes the same place. The planner shares memory with the
    first of them that dies in that very step and is large enough.
    """

    size: int
    first: int
    last: int
    in_place: tuple[int, ...] = ()


@dataclass(frozen=True)
class Layout:
    """`offsets[i]` is where request i starts; `total` is the size of the arena, both multiples of the alignment."""

    offsets: list[int]
    total: int


@dataclass(eq=False)
class _Block:
    """Requests that share one place, each taking it over from the one before."""

    size: int
    first: int
    last: int
    members: list[int]
    offset: int = 0


def plan_memory(requests: Sequence[Request], alignment: int = ALIGNMENT) -> Layout:
    """Place all requests so that those alive at the same time do not overlap, in-place pairs excepted.

    Raises ValueError for a negative size, a life that ends before it starts, or a hint that names no request.
    """
    blocks = _merge_in_place(requests, alignment)
    order = _search(sorted(blocks, key=lambda block: (-block.size, block.first)), _peak(blocks))
    total = _place(order)
    offsets = [0] * len(requests)
    for block in blocks:
        for member in block.members:
            offsets[member] = block.offset
    return Layout(offsets, total)


def peak_of_live_sizes(requests: Sequence[Request], alignment: int = ALIGNMENT) -> int:
    """The largest sum of the sizes alive in one step, in-place pairs counted once: no arena can be smaller."""
    return _peak(_merge_in_place(requests, alignment))


def _peak(blocks: Sequence[_Block]) -> int:
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.size
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.size
    peak = live = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


def _merge_in_place(requests: Sequence[Request], alignment: int) -> list[_Block]:
    blocks: list[_Block] = []
    block_of: dict[int, _Block] = {}
    order = sorted(range(len(requests)), key=lambda i: requests[i].first)
    for i in order:
        request = requests[i]
        if request.size < 0 or request.last < request.first:
            raise ValueError(f"request {i}: {request} has a negative size or ends before it starts")
        if any(not 0 <= hint < len(requests) for hint in request.in_place):
            raise ValueError(f"request {i}: {request.in_place} names requests that do not exist")
        size = -(-request.size // alignment) * alignment
        for hint in request.in_place:
            block = block_of.get(hint)
            donor = requests[hint]
            # Of several takers only the first gets the memory: then the block lives longer than its donor.
            if block and donor.last == request.first > donor.first and block.last == donor.last and size <= block.size:
                block.last = request.last
                block.members.append(i)
                block_of[i] = block
                break
        else:
            block = _Block(size, request.first, request.last, [i])
            blocks.append(block)
            block_of[i] = block
    return blocks


def _place(order: Sequence[_Block]) -> int:
    """Set the offsets, block after block; gives the size of the arena."""
    placed: list[_Block] = []  # sorted by offset
    for block in order:
        block.offset = _best_gap(block, placed)
        insort(placed, block, key=lambda other: other.offset)
    return max((block.offset + block.size for block in order), default=0)


def _best_gap(block: _Block, placed: Sequence[_Block]) -> int:
    """The smallest gap that holds `block` between the placed blocks it lives together with, else their end."""
    best = best_waste = -1
    end = 0
    for other in placed:
        if other.last < block.first or block.last < other.first:
            continue
        waste = other.offset - end - block.size
        if waste >= 0 and (best < 0 or waste < best_waste):
            best, best_waste = end, waste
        end = max(end, other.offset + other.size)
    return best if best >= 0 else end


def _search(order: list[_Block], peak: int) -> list[_Block]:
    """The order with the smallest arena that some random changes find; stops at `peak`, which no order can beat.

    A change places the topmost block before another one that lives at the same time, or that one after it.
    """
    draw = random.Random(0)
    best = _place(order)
    for _ in range(min(_SEARCH_STEPS, _SEARCH_BUDGET // max(1, len(order)))):
        if best <= peak:
            break
        top = max(order, key=lambda block: block.offset + block.size)
        rivals = [b for b in order if b is not top and b.first <= top.last and top.first <= b.last]
        rival = draw.choice(rivals)
        mover, anchor, after = (top, rival, 0) if draw.random() < 0.5 else (rival, top, 1)
        changed = list(order)
        changed.remove(mover)
        changed.insert(changed.index(anchor) + after, mover)
        total = _place(changed)
        if total <= best:
            best, order = total, changed
        else:
            _place(order)
    return order
