"""Functions of float32 elements that follow each other, a block of elements at a time, so that what is between them
stays in the cache. Each is computed by the kernel that computes it alone. Imports numba.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i64, kernel, truncated_divide, view
from runtime.kernels.elementwise_parameters import CHAIN, CHAIN_STAGE
from runtime.native.atomics import call_kernel

PARAMETERS_BYTES = 256  # at the start of the scratch: those of one kernel


@kernel
def elementwise_chain_f32(params, begin, end, scratch):
    """Scratch: one kernel's parameters, then two blocks of elements."""
    p = view(CHAIN, params)
    own = i64(scratch)
    buffers = scratch + PARAMETERS_BYTES
    for tile in range(begin, end):
        first = tile * p.block
        count = min(p.block, p.count - first)
        source = p.input + 4 * first
        target = buffers
        at = p.first
        while at != 0:
            stage = view(CHAIN_STAGE, at)
            for slot in range(stage.slots):
                own[slot] = i64(stage.params)[slot]
            if stage.next == 0:
                target = p.output + 4 * first
            own[stage.chained] = source
            own[stage.output] = target
            if stage.other >= 0:
                own[stage.other] = stage.other_input + stage.other_step * first
            tiles = int64(1)
            if stage.extent >= 0:
                own[stage.extent] = count
            else:
                tiles = truncated_divide(count, stage.run)
            status = call_kernel(stage.kernel, scratch, int64(0), tiles, scratch)
            if status != 0:
                return status
            source = target
            target = buffers + 4 * p.block if target == buffers else buffers
            at = stage.next
    return 0
