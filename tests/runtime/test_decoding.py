"""The kernel that decodes entropy-coded streams gives what numpy gives, touches nothing else, and is found in files."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
import schema
from runtime import decoding
from runtime.kernels.rans_parameters import RANS
from runtime.native.errors import KernelCompileError
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import native_function
from schema import Graph, Model, Node, Tensor
from schema.coding import frequencies, rans
from schema.ops import attributes as a
from tests.support.drawing import generators, symbol_arrays
from tests.support.guarded import Guarded, guarded_copy


@pytest.fixture(scope="module")
def address():
    return kernel_library().load([decoding.FAMILY])[decoding.SYMBOL]


def copied(todo):
    return rans.Lanes(todo.states.copy(), todo.words.copy(), todo.table)


def compare(address, todo, count):
    """Both decoders on the same words; gives what they agree on."""
    ours, expected, symbols, reference = (
        copied(todo),
        copied(todo),
        np.empty(count, np.uint8),
        np.empty(count, np.uint8),
    )
    fits = rans.decode_lanes(expected, reference)
    assert decoding.decode_with(address, ours, symbols) == fits
    if fits:
        np.testing.assert_array_equal(symbols, reference)
        np.testing.assert_array_equal(ours.states, expected.states)
    return fits


def parts(data):
    """Lanes, as rans.decode makes them."""
    lanes = 1 << data[0]
    table, size = frequencies.read(memoryview(data)[1:])
    states = np.frombuffer(data, "<u4", lanes, 1 + size).astype(np.uint32)
    return rans.Lanes(states, np.frombuffer(data[1 + size + 4 * lanes :], "<u2").astype(np.uint16), table)


@given(symbol_arrays())
def test_as_numpy_decodes(address, symbols):
    data = rans.encode(symbols)
    todo = parts(data)
    count = len(symbols) - rans._in_states(len(todo.states), todo.table, len(symbols))
    assert compare(address, todo, count)


@given(st.data())
def test_words_and_states_of_any_kind(address, data):
    rng = data.draw(generators)
    table, _, _ = frequencies.fit(rng.integers(0, data.draw(st.sampled_from([2, 20, 1000])), 256))
    states = rng.integers(rans.LOWEST, 1 << 32, 1 << data.draw(st.integers(0, 7)), np.uint32)
    words = rng.integers(0, 1 << 16, data.draw(st.integers(0, 300)), np.uint16)
    compare(address, rans.Lanes(states, words, table), data.draw(st.integers(0, 600)))


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("missing", [0, 1, 100])
def test_no_other_memory_is_touched(address, at_end, missing, rng):
    symbols = rng.integers(3, 200, 5000).astype(np.uint8)
    todo = parts(rans.encode(symbols))
    words = todo.words[: len(todo.words) - missing]
    counts = todo.table.counts
    count = 5000 - rans._in_states(len(todo.states), todo.table, 5000)
    arrays = {
        "symbol_of": np.repeat(np.arange(len(counts), dtype=np.uint8), counts),
        "table": (counts << 16 | todo.table.starts).astype(np.uint32),
        "states": todo.states,
        "words": words,
    }
    blocks = {name: guarded_copy(array, at_end) for name, array in arrays.items()} | {"out": Guarded(count, at_end)}
    numbers = {"scale": todo.table.scale, "low": todo.table.low, "lanes": len(todo.states)}
    numbers |= {"word_count": len(words), "count": count} | {name: block.address for name, block in blocks.items()}
    status = native_function(address)(RANS.pack(numbers).ctypes.data, 0, 1, 0)
    assert (status == 0) == (missing == 0)
    if not missing:
        np.testing.assert_array_equal(blocks["out"].bytes, symbols[:count])


def test_numpy_where_no_kernel_can_be_compiled(monkeypatch, rng):
    def without_numba():
        raise KernelCompileError("numba is missing")

    monkeypatch.setattr(decoding, "kernel_library", without_numba)
    symbols = rng.integers(0, 9, 30_000).astype(np.uint8)
    np.testing.assert_array_equal(rans.decode(rans.encode(symbols), len(symbols)), symbols)


SCRIPT = """
import sys
import numpy as np
import runtime
from schema.coding import rans
rans.decode_lanes = None  # what is decoded is decoded by the kernel
model = runtime.load(sys.argv[1])
print(int(model.graph.nodes[0].inputs[1].value.astype(np.int64).sum()), "numba" in sys.modules)
"""


def test_files_are_read_with_the_kernel_and_without_numba(tmp_path, repository, rng):
    x, y = Tensor("x", np.float32, (None, 64)), Tensor("y", np.float32)
    kernel = np.where(rng.random((512, 64)) < 0.8, 0, rng.integers(-5, 6, (512, 64))).astype(np.float32)
    node = Node("FULLY_CONNECTED", [x, Tensor.from_array("w", kernel)], [y], a.FullyConnectedAttributes(), "dense")
    path = tmp_path / "m.xnn"
    path.write_bytes(schema.write(Model([Graph([node], [x], ["x"], [y], ["y"])])))
    np.testing.assert_array_equal(runtime.load(path).graph.nodes[0].inputs[1].value, kernel)  # and compiles the kernel
    process = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], cwd=repository, env=os.environ, text=True,
                             capture_output=True, check=True, timeout=120)  # fmt: skip
    assert process.stdout.split() == [str(int(kernel.sum())), "False"]
