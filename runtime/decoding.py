"""Entropy-coded streams decoded by a kernel, wherever a file is read: what `schema.coding.rans` does step by step in
numpy, bit for bit. Importing `runtime` registers it.
"""

from __future__ import annotations

import numpy as np

from runtime.kernels.rans_parameters import RANS
from runtime.native.errors import KernelCompileError
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import native_function
from schema.coding import rans

FAMILY, SYMBOL = "runtime.kernels.rans", "xnn_rans_decode"


def decode_lanes(todo: rans.Lanes, symbols: np.ndarray) -> bool:
    """What `rans.decode_lanes` gives; it is called where no kernel can be compiled."""
    try:
        address = kernel_library().load([FAMILY])[SYMBOL]
    except KernelCompileError:
        return rans.decode_lanes(todo, symbols)
    return decode_with(address, todo, symbols)


def decode_with(address: int, todo: rans.Lanes, symbols: np.ndarray) -> bool:
    """By the kernel at that address. It touches the arrays' memory and no other, whatever they hold."""
    counts, starts = todo.table.counts, todo.table.starts
    symbol_of = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    table = (counts << 16 | starts).astype(np.uint32)
    params = RANS.pack(
        {
            "symbol_of": symbol_of.ctypes.data,
            "table": table.ctypes.data,
            "scale": todo.table.scale,
            "low": todo.table.low,
            "states": todo.states.ctypes.data,
            "lanes": len(todo.states),
            "words": todo.words.ctypes.data,
            "word_count": len(todo.words),
            "out": symbols.ctypes.data,
            "count": len(symbols),
        }
    )
    return native_function(address)(params.ctypes.data, 0, 1, 0) == 0
