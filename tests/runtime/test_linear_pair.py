"""ADD and SUB of int8 by float32 arithmetic: all pairs of numbers, at scales that make ties, and broadcasting."""

from fractions import Fraction

import numpy as np
import pytest

from runtime.lowering.linear_pair import find_linear, find_sum
from schema import Node, Quantization, Tensor, ops
from schema.ops.attributes import ArithmeticAttributes
from tests.support.engine import compare

EVERY = np.arange(-128, 128).astype(np.int8)
SCALES = {
    "unlike": (Quantization(0.0471, 3), Quantization(0.0213, -7), Quantization(0.0577, 11)),
    "halves, so that every second sum is a tie": (Quantization(0.05, 0), Quantization(0.05, 0), Quantization(0.1, 0)),
    "large sums": (Quantization(0.9, -128), Quantization(0.4, 127), Quantization(0.1, 5)),
    "small sums": (Quantization(0.001, 1), Quantization(0.002, -1), Quantization(0.7, 0)),
}


@pytest.mark.parametrize("op", ["ADD", "SUB"])
@pytest.mark.parametrize("case", SCALES)
@pytest.mark.parametrize("activation", ["NONE", "RELU"])
def test_all_pairs(op, case, activation):
    a, b, out = SCALES[case]
    arrays = [np.repeat(EVERY, 256), np.tile(EVERY, 256)]
    tensors = [Tensor(name, np.int8, (65536,), q) for name, q in (("a", a), ("b", b))]
    y = Tensor("y", np.int8, None, out)
    compare([Node(op, tensors, [y], ArithmeticAttributes(activation=activation))], tensors, [y], arrays)


@pytest.mark.parametrize(
    "shapes", [((3, 5, 40), (40,)), ((3, 5, 40), (3, 5, 1)), ((1, 40), (7, 40)), ((2, 33), (2, 33))]
)
def test_broadcasting(shapes, rng):
    a, b, out = SCALES["unlike"]
    arrays = [rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes]
    tensors = [Tensor(name, np.int8, s, q) for name, s, q in zip("ab", shapes, (a, b), strict=True)]
    y = Tensor("y", np.int8, None, out)
    compare([Node("ADD", tensors, [y], ArithmeticAttributes())], tensors, [y], arrays)


class Context:
    """What find_linear looks at."""

    def __init__(self, op, a, b, out):
        self.node = Node(op, [], [])
        self.inputs = [Tensor("x", np.int8, (1,), q).type for q in (a, b)]
        self.outputs = [Tensor("y", np.int8, (1,), out).type]
        self.attributes = ArithmeticAttributes()


def test_a_table_that_is_no_linear_function_is_found_out():
    context = Context("ADD", *SCALES["unlike"])
    exact = np.add.outer(0.0471 * (EVERY.astype(float) - 3), 0.0213 * (EVERY.astype(float) + 7)) / 0.0577 + 11
    table = np.clip(np.rint(exact), -128, 127).astype(np.int8)
    assert find_linear(context, table)["margin"] < 1e-3
    table[100, 100] += 1
    assert find_linear(context, table) is None


def operands(case):
    return [Tensor(name, np.int8, (1,), q).type for name, q in zip("aby", SCALES[case], strict=True)]


@pytest.mark.parametrize("op", ["ADD", "SUB"])
@pytest.mark.parametrize(("case", "low"), [("unlike", -128), ("unlike", 11), ("large sums", -128), ("large sums", 5)])
def test_a_proven_sum_is_the_references(op, case, low):
    """However products are rounded before they are added."""
    found = find_sum(op, *operands(case), low, 127)
    arrays = [EVERY[:, np.newaxis], EVERY[np.newaxis]]
    types = [Tensor("x", np.int8, x.shape, q).type for x, q in zip(arrays, SCALES[case], strict=False)]
    result = Tensor("y", np.int8, (256, 256), SCALES[case][2]).type
    expected = np.clip(ops.get(op).reference(ArithmeticAttributes(), arrays, types, [result])[0], low, 127)
    a, b, offset = (np.float32(x) for x in (found.a_factor, found.b_factor, found.offset))
    x, z = (array.astype(np.float32) for array in arrays)
    np.testing.assert_array_equal(np.clip(np.rint(x * a + (z * b + offset)), low, 127), expected)
    exact = np.vectorize(
        lambda x, z: round(Fraction(float(a)) * x + once(Fraction(float(b)) * z + Fraction(float(offset))))
    )
    some = EVERY[::17].astype(int)
    np.testing.assert_array_equal(np.clip(exact(some[:, np.newaxis], some), low, 127), expected[::17, ::17])
    np.testing.assert_array_equal(found.vectors()[:12].view(np.float32), np.repeat(a / 2**24, 3))


def once(value):
    """Rounded to float32 (from float64, which holds these sums)."""
    assert Fraction(float(value)) == value
    return Fraction(float(np.float32(float(value))))


def test_sums_that_are_not_proven():
    """Ties round away from the zero point, which no linear function does; and factors may be too small or too large."""
    halves = operands("halves, so that every second sum is a tie")
    assert find_sum("ADD", *halves, -128, 127) is None
    assert find_sum("ADD", *halves, 0, 127) is not None  # all of them up
    assert find_sum("MUL", *operands("unlike"), -128, 127) is None
    assert find_sum("ADD", *operands("small sums"), -128, 127) is not None
    tiny = Tensor("a", np.int8, (1,), Quantization(1e-6, 0)).type
    assert find_sum("ADD", tiny, *operands("small sums")[1:], -128, 127) is None
    huge = Tensor("a", np.int8, (1,), Quantization(50.0, 0)).type
    assert find_sum("ADD", huge, *operands("unlike")[1:], -128, 127) is None
