"""Biases and channel scales on a grid of few bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import converter
import schema
from converter.quantize.vectors import round_vectors, to_grid
from schema import evaluate
from schema.coding import codecs
from schema.errors import InputError
from schema.graph import Constant, StoredConstant
from tests.support.float_graphs import Builder


@given(arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e6, 1e6, width=32)), st.integers(4, 8))
def test_numbers_move_by_half_a_step_and_fit_their_bits(numbers, bits):
    rounded = to_grid(numbers, bits)
    most, largest = 2 ** (bits - 1) - 1, np.abs(numbers).max()
    assert np.abs(rounded - numbers).max() <= largest / most
    if largest > 1e-30:
        step = np.exp2(np.ceil(np.log2(largest / most)))  # or half of it
        whole = rounded / (step / 2)
        np.testing.assert_array_equal(whole, np.rint(whole))
        assert np.abs(rounded).max() <= most * step


def test_what_is_on_the_grid_stays(rng):
    numbers = rng.integers(-127, 128, 50).astype(np.float32) / 64
    np.testing.assert_array_equal(to_grid(numbers, 8), numbers)
    np.testing.assert_array_equal(to_grid(np.zeros(5, np.float32), 8), np.zeros(5))


def network(rng):
    builder = Builder()
    x = builder.input("x", None, 8, 8, 16)
    y = builder.conv(x, 32, name="conv", activation="RELU")
    y = builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="pool")
    graph = builder.end(builder.dense(y, 10, name="dense"))
    conv, dense = graph.nodes[0], graph.nodes[-1]
    # As RateCallback leaves kernels, with BatchNorm folded: multiples of a step, and a scale for each channel.
    levels = (rng.integers(-2, 3, conv.inputs[1].shape) * np.float32(0.0371)).astype(np.float32)
    conv.inputs[1].set_constant(Constant(levels, rng.uniform(0.2, 2, 32).astype(np.float32), 0))
    conv.inputs[2].set_constant(Constant(rng.normal(0, 1, 32).astype(np.float32)))
    dense.inputs[2].set_constant(Constant(rng.normal(0, 1, 10).astype(np.float32)))
    return graph


def test_steps_of_kernels_go_into_their_scales(rng):
    graph = network(rng)
    data = rng.normal(0, 1, (4, 8, 8, 16)).astype(np.float32)
    before, (expected,) = len(schema.write(schema.Model([graph]))), evaluate.run(graph, [data])
    changed = round_vectors(graph, 8)
    assert len(changed) == 3  # not the dense kernel, not the axes
    kernel = graph.nodes[0].inputs[1].constant
    assert kernel.values.dtype == np.int8 and set(np.unique(kernel.values)) <= {-2, -1, 0, 1, 2}
    assert codecs.steps(kernel.channel_scale) is not None
    assert before - len(schema.write(schema.Model([graph]))) > 3 * (32 + 32 + 10) - 16
    (found,) = evaluate.run(graph, [data])
    assert 0 < np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_kernels_of_many_values_keep_them(rng):
    graph = network(rng)
    values = rng.normal(0, 1, graph.nodes[0].inputs[1].shape).astype(np.float32)
    graph.nodes[0].inputs[1].set_constant(Constant(values, np.ones(32, np.float32) / 3, 0))
    round_vectors(graph, 8)
    np.testing.assert_array_equal(graph.nodes[0].inputs[1].constant.values, values)


@pytest.mark.parametrize("bits", [3, 9, 0, 32])
def test_bits_that_vectors_cannot_have(bits, tmp_path):
    with pytest.raises(InputError, match="from 4 to 8"):
        converter.convert(tmp_path, vector_bits=bits)


def test_a_graph_that_was_read_from_a_file_is_rounded_as_any_other(rng):
    """Its kernels are decoded when they are asked for, and are rounded to constants that are not."""
    builder = Builder()
    graph = builder.end(builder.dense(builder.input("x", None, 128), 128))
    kernel = graph.nodes[0].inputs[1]
    kernel.set_constant(Constant(rng.integers(-7, 8, (128, 128)).astype(np.int8), rng.random(128).astype(np.float32)))
    read = schema.read(schema.write(schema.Model([graph]))).graph
    assert isinstance(read.nodes[0].inputs[1].constant, StoredConstant)
    for each in (graph, read):
        assert len(round_vectors(each, 6)) == 2
    x = rng.normal(size=(3, 128)).astype(np.float32)
    np.testing.assert_array_equal(evaluate.run(read, [x])[0], evaluate.run(graph, [x])[0])
