import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from runtime.native.executor import KernelCall, NativePlan
from runtime.native.kernel_library import kernel_library
from runtime.native.worker_pool import worker_pool
from schema.errors import ExecutionError
from tests.support.probe_parameters import PROBE


@pytest.fixture(scope="module")
def probe():
    symbols = kernel_library().load(["tests.support.probe_kernels"])

    def call(kernel, source=0, target=0, row=0, scale=0.0, tiles=1, **options):
        values = {"row": row, "scale": scale}
        for name, value in (("source", source), ("target", target)):
            values[name] = value.ctypes.data if isinstance(value, np.ndarray) else value
        return KernelCall(symbols[f"xnn_probe_{kernel}"], PROBE.pack(values), tiles, alive=(source, target), **options)

    return call


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("grain", [1, 5])
def test_kernels_see_all_that_earlier_kernels_wrote(probe, threads, grain):
    n = 33
    a, b = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    calls = []
    for _ in range(3):  # transposing needs every tile of the step before
        calls.append(probe("transpose", a, b, n, tiles=n, grain=grain))
        calls.append(probe("scale", b, a, n, 0.5, tiles=n, grain=grain))
    plan = NativePlan(calls)
    start = np.random.default_rng(0).random((n, n)).astype(np.float32)
    expected = start
    for _ in range(3):
        expected = expected.T * np.float32(0.5) + np.float32(1)
    for _ in range(300):
        a[...] = start
        b[...] = 0
        assert plan.run(threads) == -1
        np.testing.assert_allclose(a, expected, rtol=1e-6)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("tiles", [1, 2, 3, 7, 50])
def test_all_tiles_are_computed_once(probe, threads, tiles):
    """However they are divided: fewer than workers, grains that do not divide them, one tile for all."""
    counts = [np.zeros(tiles, np.int64) for _ in range(4)]
    grains = (1, 2, 3, tiles)
    plan = NativePlan([probe("count", 0, c, tiles=tiles, grain=g) for c, g in zip(counts, grains, strict=True)])
    for _ in range(200):
        plan.run(threads)
    for count in counts:
        np.testing.assert_array_equal(count, 200)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_stops_the_run_and_names_the_call(probe, threads):
    count = np.array([5, 0], np.int64)
    calls = [
        probe("fail", row=2, scale=-1.0, tiles=50),
        probe("fail", row=2, scale=41.0, tiles=50, name="lookup of layer 'embedding'"),
        probe("count_down", count, count[1:]),
    ]
    plan = NativePlan(calls)
    for _ in range(50):
        with pytest.raises(ExecutionError, match=r"^lookup of layer 'embedding': its kernel met an index outside"):
            plan.run(threads)
    assert count[0] == 5
    with pytest.raises(ExecutionError, match="call 0 of 1: its kernel stopped with status 99"):
        NativePlan([probe("fail", row=99, tiles=4)]).run(threads)
    sound = NativePlan([probe("fail", row=2, scale=-1.0, tiles=50), calls[2]])
    assert sound.run(threads) == -1
    assert count[0] == 4


@pytest.mark.parametrize("threads", [1, 2])
def test_branches_and_loops(probe, threads):
    n = 16
    count, running = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    a, b = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    plan = NativePlan(
        [
            probe("scale", a, b, n, 1.0, tiles=n),  # b = a + 1
            probe("copy", b, a, n, tiles=n),
            probe("count_down", count, running, next=0, flag=running.ctypes.data, otherwise=3),
            probe("scale", a, b, n, 2.0, tiles=n),
        ]
    )
    for times in (1, 2, 17):
        count[0] = times
        a[...] = 0
        plan.run(threads)
        assert (a == times).all()
        assert (b == 2 * times + 1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_a_plan_run_alone(probe, threads):
    counts = np.full(3, 10, np.int64)
    flag = np.zeros(1, np.uint8)
    plan = NativePlan([probe("count_down", counts[i : i + 1], flag, tiles=1 + i % 2) for i in range(3)])
    assert plan.run(threads, first=0, count=1) == 1
    assert plan.run(threads, first=1, count=2) == -1
    assert plan.run(threads, first=2) == -1
    assert plan.run(threads, count=0) == 0
    assert (counts < 10).all()
    assert len(plan) == 3


def test_nothing_to_do(probe):
    assert NativePlan([]).run(2) == -1
    assert NativePlan([probe("fail", row=1, tiles=0)]).run(2) == -1


@pytest.mark.parametrize("options", [{"tiles": -1}, {"tiles": 2**31}, {"grain": 0}, {"next": 7}, {"otherwise": -2}])
def test_impossible_records_are_refused(probe, options):
    with pytest.raises(ValueError):
        NativePlan([probe("fail", **options)])


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_worker_has_its_own_scratch(probe, threads):
    tiles, words = 400, 100
    sums = np.zeros(tiles, np.int64)
    plan = NativePlan([probe("scratch", 0, sums, words, tiles=tiles, scratch=8 * words)])
    for _ in range(20):
        sums[...] = 0
        plan.run(threads)
        np.testing.assert_array_equal(sums, words * np.arange(tiles))  # the sum also holds the misalignment


def test_many_python_threads_run_many_plans(probe):
    n, failures = 24, []
    shared_a, shared_b = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    shared = NativePlan([probe("scale", shared_a, shared_b, n, 2.0, tiles=n)])

    def work(seed):
        a = np.random.default_rng(seed).random((n, n)).astype(np.float32)
        b, c = np.zeros_like(a), np.zeros_like(a)
        expected = (a.T * np.float32(0.5) + np.float32(1)).T
        for i in range(60):
            # A new plan each time: helpers that come too late must not look at one that is gone.
            plan = NativePlan(
                [
                    probe("transpose", a, b, n, tiles=n),
                    probe("scale", b, c, n, 0.5, tiles=n),
                    probe("transpose", c, b, n, tiles=n),
                ]
            )
            b[...] = c[...] = 0
            plan.run(1 + i % 3)
            shared.run(2)
            if not np.allclose(b, expected):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not failures
    assert (shared_b == 3).all()


def _run_in_child(plan, target, queue):
    target[...] = 0
    for _ in range(20):
        plan.run(2)
    queue.put((target.tolist(), worker_pool().size))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(probe):
    n = 8
    a, b = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    plan = NativePlan([probe("scale", a, b, n, 2.0, tiles=n)])
    plan.run(2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_run_in_child, args=(plan, b, queue))
    child.start()
    result, size = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    assert result == np.full((n, n), 3.0).tolist()
    assert size == 1
    plan.run(2)
    assert (b == 3).all()


def test_idle_helpers_sleep(probe):
    a, b = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    NativePlan([probe("scale", a, b, 8, 2.0, tiles=8)]).run(2)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.4)
    assert time.process_time() - before < 0.2  # a spinning helper would use all of it


def test_the_process_ends_while_helpers_exist_and_daemons_run():
    script = """
import threading, numpy as np
from runtime.native.executor import KernelCall, NativePlan
from runtime.native.kernel_library import kernel_library
from tests.support.probe_parameters import PROBE
symbols = kernel_library().load(["tests.support.probe_kernels"])
a, b = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
params = PROBE.pack(dict(source=a.ctypes.data, target=b.ctypes.data, row=64, scale=2.0))
plan = NativePlan([KernelCall(symbols["xnn_probe_scale"], params, 64)] * 10)
plan.run(2)
def forever():
    while True:
        plan.run(2)
threading.Thread(target=forever, daemon=True).start()
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=os.getcwd(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
