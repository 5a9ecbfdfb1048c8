import numpy as np
import pytest

from converter.passes import manager, recover_dilated_conv
from tests.converter.passes.building import Building, names, rewritten


def paddings(size, kernel, dilation, same):
    """(paddings, crops) along one axis, as TensorFlow computes them."""
    total = (kernel - 1) * dilation if same else 0
    before, after = total // 2, total - total // 2
    extra = -(size + total) % dilation
    return [before, after + extra], [0, extra]


def dilated(b: Building, op, x, kernel, dilations, same, layer="conv"):
    sizes = x.shape[1:-1]
    pairs = [paddings(n, k, d, same) for n, k, d in zip(sizes, kernel, dilations, strict=True)]
    block = b.integers(*dilations)
    split = b("SPACE_TO_BATCH_ND", x, block, b.constant([p for p, _ in pairs], np.int32))
    channels = x.shape[-1]
    weights = {
        "CONV_2D": (5, *kernel, channels),
        "DEPTHWISE_CONV_2D": (1, *kernel, channels * 2),
        "CONV_3D": (*kernel, channels, 5),
    }
    y = b(op, split, b.normal(*weights[op]), layer=layer)
    return b("BATCH_TO_SPACE_ND", y, block, b.constant([c for _, c in pairs], np.int32))


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("size", [(12, 12), (9, 11)])
@pytest.mark.parametrize("dilations", [(2, 2), (3, 2), (1, 4)])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 1)])
def test_two_dimensions(op, same, size, dilations, kernel):
    b = Building()
    graph = b.end(dilated(b, op, b.x(None, *size, 3), kernel, dilations, same))
    assert rewritten(graph, recover_dilated_conv.run) == [f"conv: dilation {dilations[0]}x{dilations[1]} recovered"]
    assert names(graph) == [op]
    attributes = graph.nodes[0].attributes
    assert attributes.padding == ("SAME" if same else "VALID")
    assert (attributes.dilation_h, attributes.dilation_w) == dilations


@pytest.mark.parametrize("same", [True, False])
def test_three_dimensions(same):
    b = Building()
    graph = b.end(dilated(b, "CONV_3D", b.x(None, 6, 5, 7, 2), (3, 2, 2), (2, 1, 3), same))
    rewritten(graph, recover_dilated_conv.run)
    assert names(graph) == ["CONV_3D"]


@pytest.mark.parametrize("axis", [1, 2, -3])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("length", [16, 11])
def test_one_dimension(axis, same, length):
    b = Building()
    before, crops = paddings(length, 3, 2, same)
    split = b("SPACE_TO_BATCH_ND", b.x(None, length, 4), b.integers(2), b.constant([before], np.int32))
    kernel = (3, 1) if axis == 2 else (1, 3)
    conv = b("CONV_2D", b("EXPAND_DIMS", split, b.index(axis)), b.normal(5, *kernel, 4), layer="conv")
    squeezed = b("SQUEEZE", conv, axes=(axis,))
    graph = b.end(b("BATCH_TO_SPACE_ND", squeezed, b.integers(2), b.constant([crops], np.int32)))
    assert len(rewritten(graph, recover_dilated_conv.run)) == 1
    assert names(graph) == ["EXPAND_DIMS", "CONV_2D", "SQUEEZE"]


def test_other_amounts_become_explicit_pads():
    b = Building()
    block = b.integers(2, 2)
    split = b("SPACE_TO_BATCH_ND", b.x(None, 8, 8, 3), block, b.constant([[3, 1], [0, 2]], np.int32))
    conv = b("CONV_2D", split, b.normal(4, 3, 3, 3))
    graph = b.end(b("BATCH_TO_SPACE_ND", conv, block, b.constant([[1, 0], [0, 1]], np.int32)))
    rewritten(graph, recover_dilated_conv.run)
    assert names(graph) == ["CONV_2D"]
    assert graph.nodes[0].attributes.pads == (2, 1, 0, 1)


def test_dilated_conv_batch_norm_and_relu_become_one_conv():
    b = Building()
    y = dilated(b, "CONV_2D", b.x(None, 9, 9, 3), (3, 3), (2, 2), same=True)
    y = b("ADD", y, b.normal(5), layer="conv")
    y = b("ADD", b("MUL", y, b.normal(5), layer="bn"), b.normal(5), layer="bn")
    graph = b.end(b("RELU", y, layer="relu"))
    rewritten(graph, lambda g: [str(manager.optimize(g))], tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]
    assert graph.nodes[0].attributes.activation == "RELU"


@pytest.mark.parametrize("case", ["stride", "SAME", "block", "crop", "shared", "activation between"])
def test_near_misses(case):
    b = Building()
    block = b.integers(2, 2)
    split = b("SPACE_TO_BATCH_ND", b.x(None, 8, 8, 4), block, b.constant([[0, 0], [0, 0]], np.int32))
    attributes = {"stride": {"stride_h": 3}, "SAME": {"padding": "SAME"}}.get(case, {})
    conv = b("CONV_2D", split, b.normal(4, 1 if case == "stride" else 3, 3, 4), **attributes)
    joined = b("RELU", conv) if case == "activation between" else conv
    other = b.integers(1, 4) if case == "block" else block
    crops = [[1, 0], [0, 0]] if case == "crop" else [[0, 0], [0, 0]]
    out = b("BATCH_TO_SPACE_ND", joined, other, b.constant(crops, np.int32))
    graph = b.end(out, *([b("NEG", conv)] if case == "shared" else []))
    assert recover_dilated_conv.run(graph) == []
