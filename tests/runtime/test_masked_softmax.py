"""SOFTMAX behind a mask on the engine, against its reference: the same bits for integers, however masks broadcast."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
import schema
from schema import Model, Node, Quantization, Tensor, evaluate
from schema.ops.attributes import SoftmaxAttributes
from tests.support.engine import compare, graph_of
from tests.support.guarded import run_guarded

KINDS = {
    "float32": (np.float32, None, None),
    "int8": (np.int8, Quantization(0.05, 4), Quantization(1 / 256, -128)),
    "int16": (np.int16, Quantization(2e-4), Quantization(1 / 32768)),
}


def drawn(rng, kind, shape):
    dtype = np.dtype(KINDS[kind][0])
    if dtype.kind == "f":
        return 3 * rng.standard_normal(shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape, dtype=dtype)


def softmax(kind, shape, mask, constant, beta=1.0, axis=-1):
    """(node, inputs, output) of a mask that is given or a constant."""
    dtype, given_as, result = KINDS[kind]
    x, y = Tensor("x", dtype, shape, given_as), Tensor("y", dtype, None, result)
    m = Tensor.from_array("mask", mask) if constant else Tensor("mask", np.bool_, mask.shape)
    return Node("SOFTMAX", [x, m], [y], SoftmaxAttributes(beta, axis)), [x] if constant else [x, m], y


def check(kind, shape, mask_shape, rng, constant=False, share=0.6, threads=1, **attributes):
    x, mask = drawn(rng, kind, shape), rng.random(mask_shape) < share
    node, inputs, y = softmax(kind, shape, mask, constant, **attributes)
    compare([node], inputs, [y], [x] if constant else [x, mask], rtol=1e-6 if kind == "float32" else 0, threads=threads)


@pytest.mark.parametrize("kind", list(KINDS))
@given(data=st.data())
def test_bits_of_the_reference(kind, data):
    sizes = st.sampled_from([1, 2, 3, 4])
    shape = (*data.draw(st.lists(sizes, max_size=3)), data.draw(st.sampled_from([1, 3, 16, 17, 33, 64, 100])))
    kept = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    mask = tuple(size if keep else 1 for size, keep in zip(shape, kept, strict=True))
    mask = mask[data.draw(st.integers(0, len(shape))) :]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    share, constant = data.draw(st.sampled_from([0.0, 0.1, 0.6, 1.0])), data.draw(st.booleans())
    beta, threads = data.draw(st.sampled_from([1.0, 0.3])), data.draw(st.sampled_from([1, 2]))
    check(kind, shape, mask, rng, constant, share, threads, beta=beta)


@pytest.mark.parametrize("kind", list(KINDS))
def test_causal_and_padding(kind, rng):
    """As attention has them. The rows of queries that are padding themselves let nothing in."""
    shape = (2, 3, 20, 20)
    lengths = (np.arange(20) < np.array([[20], [13]]))[:, np.newaxis]
    causal = np.tril(np.ones((20, 20), bool))
    for mask in (causal, lengths[:, np.newaxis], causal & lengths[:, np.newaxis], lengths[..., np.newaxis]):
        node, inputs, y = softmax(kind, shape, mask, False)
        arrays = [drawn(rng, kind, shape), mask]
        compare([node], inputs, [y], arrays, rtol=1e-6 if kind == "float32" else 0, threads=2)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    ("shape", "mask", "axis"),
    [((2, 3, 4), (3, 4), 1), ((2, 1, 4), (2, 3, 1), -1), ((2, 3, 2, 3, 4), (2, 1, 2, 1, 4), -1)],
)
def test_what_runs_by_the_reference(kind, shape, mask, axis, rng):
    x, let_in = drawn(rng, kind, shape), rng.random(mask) < 0.6
    node, inputs, y = softmax(kind, shape, let_in, False, axis=axis)
    compare([node], inputs, [y], [x, let_in], native=False)


def test_what_is_not_let_in_spoils_nothing():
    x = np.array([[np.nan, 1, 1, np.inf] * 5, [3e38, -np.inf, 0, 0] * 5, [np.nan] * 20], np.float32)
    mask = np.array([[False, True, True, False] * 5, [False, True, True, True] * 5, [False] * 20])
    node, inputs, y = softmax("float32", x.shape, mask, False)
    (result,) = compare([node], inputs, [y], [x, mask], rtol=1e-6)
    assert np.isfinite(result).all()


def test_one_plan_after_another(rng):
    """Of unknown sizes, with a mask of a byte for each row: what stands for whole rows is as long as each plan's."""
    x, m = Tensor("x", np.float32, (None, None)), Tensor("mask", np.bool_, (None, 1))
    y = Tensor("y", np.float32)
    node = Node("SOFTMAX", [x, m], [y], SoftmaxAttributes())
    model = runtime.load(schema.write(Model([graph_of([node], [x, m], [y])])))
    for shape in ((3, 5), (2, 40), (3, 5), (4, 7)):
        arrays = [drawn(rng, "float32", shape), rng.random((shape[0], 1)) < 0.5]
        np.testing.assert_allclose(model(*arrays), evaluate.run_node(node, arrays)[0], rtol=1e-5)


@pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("count", [1, 5, 16, 17, 48])
def test_memory_outside_of_operands_is_not_touched(kind, count, at_end, rng):
    for mask_shape in ((2, 1, count), (3, count), (2, 3, 1)):
        x, mask = drawn(rng, kind, (2, 3, count)), rng.random(mask_shape) < 0.6
        node, (given_x, given_mask), _ = softmax(kind, x.shape, mask, False)
        (result,) = run_guarded(node, {given_x: x, given_mask: mask}, at_end)
        np.testing.assert_allclose(result, evaluate.run_node(node, [x, mask])[0], rtol=1e-5 if kind == "float32" else 0)
