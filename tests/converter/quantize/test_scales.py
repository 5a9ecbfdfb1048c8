import numpy as np
import pytest

from converter.quantize.placement import place
from converter.quantize.rules import INT8, INT16, RULES
from converter.quantize.scales import ActivationScales, parameters, representable
from schema import Quantization
from schema.ops.attributes import AxisAttributes, Pool2DAttributes
from tests.support.float_graphs import Builder

AXIS = AxisAttributes(3)


def int8(low, high):
    return parameters(low, high, INT8)


def scales(builder, *outputs, **ranges):
    """ranges: by the name of the node that computes the tensor, or of the input."""
    graph = builder.end(*outputs)
    by_name = {tensor.name.split(":")[0]: tensor for tensor in graph.tensors() if not tensor.is_constant}
    return ActivationScales(place(graph), {(by_name[name], INT8): found for name, found in ranges.items()})


@pytest.mark.parametrize(
    ("low", "high", "zero_point"),
    [(0, 6, -128), (-6, 0, 127), (-1, 1, 0), (2, 6, -128), (-6, -2, 127), (-1e-3, 100, -128), (0, 0, -128)],
)
def test_zero_is_always_exact_and_the_range_covered(low, high, zero_point):
    quantization = int8(low, high)
    assert quantization.zero_point[0] in (zero_point, zero_point - 1)
    covered = representable(quantization, INT8)
    step = quantization.scale[0]
    assert covered[0] <= min(low, 0) + 0.51 * step
    assert covered[1] >= max(high, 0) - 0.51 * step
    assert covered[1] - covered[0] == pytest.approx(max(high, 0) - min(low, 0) or 1, rel=1e-6)


def test_a_range_too_small_for_float32_products_is_widened():
    assert int8(0, 1e-30).scale[0] == np.float32(1e-9)


@pytest.mark.parametrize(("low", "high"), [(-6, 5), (0, 6), (-3, 0), (2, 7), (0, 0)])
def test_int16_is_symmetric(low, high):
    quantization = parameters(low, high, INT16)
    assert quantization.zero_point[0] == 0
    assert representable(quantization, INT16)[1] == pytest.approx(max(-low, high) or 1)


def test_moved_integers_keep_their_scale():
    builder = Builder()
    x = builder.conv(builder.input("x", None, 8, 8, 3), 4, name="conv")
    pooled = builder.node("MAX_POOL_2D", x, attributes=Pool2DAttributes(2, 2, 2, 2))
    padded = builder.node("PAD", pooled, builder.constant([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    found = scales(builder, padded, x=(-1, 1), conv=(-2, 5))
    assert found.of(x, INT8) == found.of(pooled, INT8) == found.of(padded, INT8) == int8(-2, 5)


def test_constants_widen_the_scale_that_they_share():
    builder = Builder()
    x = builder.conv(builder.input("x", None, 8, 8, 3), 4, name="conv")
    y = builder.node("MAXIMUM", x, builder.constant([[-3.0, 0, 0, 9.0]]))
    assert scales(builder, y, x=(-1, 1), conv=(-2, 5)).of(y, INT8) == int8(-3, 9)


def test_concatenation_of_tensors_that_nobody_else_reads_shares_one_scale():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    small, large = builder.conv(x, 4, name="small"), builder.conv(x, 4, name="large")
    moved = builder.node("RESHAPE", small, builder.constant([-1, 8, 8, 4], np.int32))
    joined = builder.node("CONCATENATION", moved, large, attributes=AXIS)
    found = scales(builder, joined, x=(-1, 1), small=(0, 1), large=(-8, 8))
    assert (
        found.of(small, INT8) == found.of(moved, INT8) == found.of(large, INT8) == found.of(joined, INT8) == int8(-8, 8)
    )


def test_a_tensor_that_others_read_keeps_its_precision():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    small, large = builder.conv(x, 4, name="small"), builder.conv(x, 4, name="large")
    joined = builder.node("CONCATENATION", small, large, attributes=AXIS, name="joined")
    other = builder.conv(small, 4, name="other")
    ranges = {"x": (-1, 1), "large": (-8, 8), "other": (0, 1)}
    found = scales(builder, joined, other, small=(0, 1), **ranges)
    assert found.of(small, INT8) == int8(0, 1)
    assert found.of(large, INT8) == found.of(joined, INT8) == found.into(builder.graph.nodes[2]) == int8(-8, 8)
    found = scales(builder, joined, other, small=(-6, 6), **ranges)  # a little coarser is better than requantizing
    assert found.of(small, INT8) == found.of(joined, INT8)


def test_growing_concatenations_do_not_coarsen_step_by_step():
    builder = Builder()
    whole = builder.conv(builder.input("x", None, 8, 8, 3), 4, name="block0")
    first, ranges = whole, {"x": (-1, 1), "block0": (0, 1)}
    for i in range(1, 8):
        grown = builder.conv(whole, 4, name=f"block{i}")
        whole = builder.node("CONCATENATION", whole, grown, attributes=AXIS)
        ranges[f"block{i}"] = (0, 1.3**i)
    found = scales(builder, whole, **ranges)
    assert found.of(whole, INT8) == int8(0, 1.3**7)
    assert found.of(first, INT8).scale[0] <= 1.5 * int8(0, 1).scale[0]


def test_fixed_scales_are_kept_and_joined_only_where_all_fits():
    fixed = RULES[INT8]["LOGISTIC"].fixed
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    a, b = builder.node("LOGISTIC", x), builder.node("LOGISTIC", builder.node("ABS", x, name="abs"))
    c = builder.node("TANH", x)
    same = builder.node("CONCATENATION", a, b, attributes=AXIS)
    mixed = builder.node("CONCATENATION", a, c, attributes=AXIS)
    found = scales(builder, same, mixed, x=(-1, 1), abs=(0, 1))
    assert found.of(same, INT8) == found.of(a, INT8) == found.of(b, INT8) == fixed
    assert found.of(c, INT8) == Quantization(1 / 128, 0)
    assert found.of(mixed, INT8).scale[0] >= 1.99 / 255
