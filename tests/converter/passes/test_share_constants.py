import numpy as np

from converter.passes import share_constants
from schema import Constant, Tensor
from tests.converter.passes.building import Building, rewritten


def test_equal_kernels_become_one():
    b = Building()
    kernel = b.normal(8, 8)
    x = b("FULLY_CONNECTED", b.x(None, 8), kernel, None, layer="step")
    copy = Tensor.from_array("copy", kernel.value.copy())
    graph = b.end(b("FULLY_CONNECTED", x, copy, None, layer="step"))
    assert rewritten(graph, share_constants.run) == ["step: 'copy' is 'constant'"]
    assert graph.nodes[0].inputs[1] is graph.nodes[1].inputs[1] is kernel


def test_near_misses():
    b = Building()
    x, kernel = b.x(None, 8), b.normal(8, 8)
    other = kernel.value.copy()
    other[7, 7] += 1
    scaled = Tensor("scaled", np.float32)
    scaled.set_constant(Constant(kernel.value, np.full(8, 2, np.float32)))
    half = Tensor("half", np.float32)
    half.set_constant(Constant(kernel.value.astype(np.float16)))
    turned = b.constant(kernel.value.reshape(4, 16))
    small = [b.constant([1, 2, 3, 4, 5, 6, 7, 8]) for _ in range(2)]
    results = [b("FULLY_CONNECTED", x, w, None) for w in (kernel, b.constant(other), scaled, half)]
    graph = b.end(*results, b("FULLY_CONNECTED", b.x(None, 16), turned, None), *(b("ADD", x, w) for w in small))
    assert rewritten(graph, share_constants.run) == []
