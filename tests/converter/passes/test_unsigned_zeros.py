import numpy as np

from converter.costs import stored_bytes
from converter.passes import manager, unsigned_zeros
from tests.converter.passes.building import Building, rewritten


def test_a_mask_that_was_multiplied():
    b = Building()
    values = b.rng.normal(size=(64, 64)).astype(np.float32) * (b.rng.random((64, 64)) < 0.1)
    assert np.signbit(values[values == 0]).any()
    kernel = b.constant(values)
    before = stored_bytes(kernel)
    graph = b.end(b("FULLY_CONNECTED", b.x(None, 64), kernel, None, layer="fc"))
    assert rewritten(graph, unsigned_zeros.run, tolerance=0) == ["fc: -0 became 0 in 'constant'"]
    assert not np.signbit(kernel.value[kernel.value == 0]).any()
    assert stored_bytes(kernel) < before / 2
    assert rewritten(graph, unsigned_zeros.run) == []


def test_kernels_that_are_shared_stay_shared():
    b = Building()
    kernel = b.constant(np.where(np.eye(16) > 0, 1.0, -0.0))
    y = b("FULLY_CONNECTED", b.x(None, 16), kernel, None)
    graph = b.end(b("FULLY_CONNECTED", b("RELU", y), kernel, None))
    manager.optimize(graph)
    assert graph.nodes[0].inputs[1] is graph.nodes[1].inputs[1]
