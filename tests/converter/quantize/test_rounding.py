import numpy as np
import pytest

import schema.ops
from converter.quantize import matrices, moments
from converter.quantize.moments import Moments
from converter.quantize.rounding import mean_error, round_compensated
from converter.quantize.weights import quantize_linear
from schema import Graph, Node, Tensor, evaluate
from schema.fixedpoint import dequantize

CASES = {
    "conv": ("CONV_2D", (6, 3, 2, 4), (3, 9, 8, 4), {"padding": "SAME", "stride_h": 2}),
    "grouped": ("CONV_2D", (6, 3, 3, 2), (3, 9, 8, 4), {"padding": "VALID", "dilation_w": 2}),
    "explicit": ("CONV_2D", (6, 3, 3, 4), (3, 9, 8, 4), {"padding": "EXPLICIT", "pads": (1, 0, 2, 1)}),
    "volume": ("CONV_3D", (2, 3, 2, 4, 6), (3, 3, 4, 5, 4), {"padding": "SAME", "stride_d": 2, "dilation_h": 2}),
    "grouped volume": ("CONV_3D", (2, 3, 3, 2, 6), (3, 4, 4, 4, 4), {"padding": "VALID", "dilation_d": 2}),
    "depthwise": ("DEPTHWISE_CONV_2D", (1, 3, 3, 8), (3, 9, 8, 4), {"padding": "SAME", "stride_w": 2}),
    "dense": ("FULLY_CONNECTED", (6, 4), (3, 5, 4), {}),
    "rows": ("FULLY_CONNECTED", (6, 4), (3, 2, 2), {"keep_num_dims": False}),
}
EVERY = 1000  # positions of a sample: all of them
AXES = {"depthwise": 3, "volume": 4, "grouped volume": 4}
"""Of output channels, where that is not the first."""


def linear_node(case, rng):
    op, shape, x, attributes = CASES[case]
    weights = Tensor.from_array("weights", rng.normal(0, 1, shape).astype(np.float32))
    node = Node(op, [Tensor("x", np.float32, x), weights], [Tensor("y", np.float32)])
    node.attributes = schema.ops.get(op).Attributes(**attributes)
    return node, rng.normal(1, 1, x).astype(np.float32)


def run(node, x, weights=None):
    inputs = [node.inputs[0], node.inputs[1] if weights is None else Tensor.from_array("weights", weights)]
    copy = Node(node.op, inputs, node.outputs, node.attributes)
    return evaluate.run(Graph([copy], [node.inputs[0]], ["x"], node.outputs, ["y"]), [x])[0]


@pytest.mark.parametrize("case", CASES)
def test_a_linear_op_is_a_product_of_matrices(case, rng):
    node, x = linear_node(case, rng)
    rows = matrices.of_input(node, x, 0, EVERY)
    weights = matrices.of_weights(node.op, node.inputs[1].value, rows.shape[0])
    products = np.einsum("grk,gok->rgo", rows, weights)
    np.testing.assert_allclose(products.reshape(-1), run(node, x).reshape(-1), atol=1e-4)
    np.testing.assert_array_equal(matrices.to_weights(node.op, weights, node.inputs[1].shape), node.inputs[1].value)
    assert weights.shape[2] == matrices.columns(node)


@pytest.mark.parametrize("case", CASES)
def test_sampled_rows_are_rows_whatever_the_batches(case, rng):
    node, x = linear_node(case, rng)
    every = {row.tobytes() for row in matrices.of_input(node, x, 0, EVERY)[0]}
    found = matrices.of_input(node, x, 0, 2)
    parts = [matrices.of_input(node, x[:1], 0, 2), matrices.of_input(node, x[1:], 1, 2)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), found)
    assert {row.tobytes() for row in found[0]} <= every
    assert found.shape[1] in (3, 6)  # one or two of each sample


def test_a_variance_that_is_small_beside_its_mean(rng):
    """As of the outputs of a sigmoid that hardly change."""
    node, _ = linear_node("dense", rng)
    x = (0.5 + 1e-4 * rng.normal(0, 1, (600, 4)) @ rng.normal(0, 1, (4, 4))).astype(np.float32)
    found = moments_of(node, x)
    ((_, covariance),) = found.covariances()
    expected = np.cov(x.astype(np.float64), rowvar=False, bias=True)
    np.testing.assert_allclose(covariance[0], expected, atol=1e-4 * expected.max())
    quantize_linear(node.inputs[1], 0, None, 0.01, 0.1, found)


def moments_of(node, *batches):
    result = Moments(node)
    for x in batches:
        result.add(x)
    return result


@pytest.mark.parametrize("case", CASES)
def test_moments_are_means_and_covariances(case, rng):
    node, _ = linear_node(case, rng)
    x = rng.normal(2, 1, (moments.FIRST_SAMPLES, *node.inputs[0].shape[1:])).astype(np.float32)
    found = moments_of(node, x[:3], x[3:])
    rows = matrices.of_input(node, x, 0, moments.ROWS_PER_SAMPLE).astype(np.float64)
    assert found.rows == rows.shape[1]
    np.testing.assert_allclose(found.mean(), rows.mean(axis=1), atol=1e-5)
    ((block, covariance),) = found.covariances()
    assert (block.start, block.stop) == (0, rows.shape[2])
    for group, expected in zip(covariance, rows, strict=True):
        np.testing.assert_allclose(group, np.cov(expected.T, bias=True), atol=1e-4)


def test_moments_do_not_depend_on_batches(rng):
    node, _ = linear_node("conv", rng)
    x = rng.normal(2, 1, (200, 9, 8, 4)).astype(np.float32)
    whole, parts = moments_of(node, x), moments_of(node, *np.array_split(x, 13))
    assert whole.rows == parts.rows == 32 * 16 + 32 * 8 + 64 * 4 + 72 * 2
    np.testing.assert_array_equal(whole.mean(), parts.mean())
    for (_, a), (_, b) in zip(whole.covariances(), parts.covariances(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_sample_counts_the_same(rng):
    node = Node("FULLY_CONNECTED", [Tensor("x", np.float32, (None, 9, 4)), Tensor("w", np.float32, (3, 4))], [])
    x = np.repeat(rng.normal(2, 1, (700, 1, 4)), 9, axis=1).astype(np.float32)
    found = moments_of(node, x)
    np.testing.assert_allclose(found.mean()[0], x[:, 0].mean(axis=0), rtol=1e-5)
    ((_, covariance),) = found.covariances()
    np.testing.assert_allclose(covariance[0], np.cov(x[:, 0].T, bias=True), atol=1e-4)


def test_columns_of_large_layers_are_cut_into_blocks(rng):
    weights = Tensor.from_array("weights", rng.normal(0, 1, (3, 600)).astype(np.float32))
    node = Node("FULLY_CONNECTED", [Tensor("x", np.float32, (None, 600)), weights], [])
    found = moments_of(node, rng.normal(0, 1, (64, 600)).astype(np.float32))
    assert [covariance.shape for _, covariance in found.covariances()] == [*[(1, 128, 128)] * 4, (1, 88, 88)]
    integers = round_compensated(weights.value, np.full(3, 0.04), found, 127)
    assert np.abs(integers * 0.04 - weights.value).max() < 0.2


def alike(rng, shape):
    """Inputs as images have them: neighbours hardly differ."""
    level = rng.normal(1, 1, (shape[0],) + (1,) * (len(shape) - 1))
    return (level + rng.normal(0, 0.05, shape)).astype(np.float32)


@pytest.mark.parametrize("case", ["conv", "grouped", "volume", "grouped volume", "depthwise", "dense"])
def test_errors_cancel_on_inputs_that_are_alike(case, rng):
    node, _ = linear_node(case, rng)
    shape = node.inputs[0].shape[1:]
    found = moments_of(node, alike(rng, (100, *shape)))
    weights, axis = node.inputs[1].value, AXES.get(case, 0)
    scale = float(np.abs(weights).max() / 127)
    nearest = np.rint(weights / scale)
    compensated = round_compensated(weights, np.full(weights.shape[axis], scale), found, 127)
    x = alike(rng, (50, *shape))
    expected = run(node, x)
    errors = [np.square(run(node, x, (scale * w).astype(np.float32)) - expected).mean()
              for w in (nearest, compensated)]  # fmt: skip
    assert errors[1] < errors[0] / (2 if case == "dense" else 4)  # four weights leave little to choose


def test_zeros_stay_zero_and_independent_inputs_are_rounded_to_the_nearest(rng):
    node, _ = linear_node("conv", rng)
    found = moments_of(node, alike(rng, (50, 9, 8, 4)))
    weights = node.inputs[1].value.copy()
    weights[rng.random(weights.shape) < 0.5] = 0
    integers = round_compensated(weights, np.full(6, 0.01), found, 127)
    assert not integers[weights == 0].any()
    assert np.abs(integers).max() <= 127
    node = Node("FULLY_CONNECTED", [node.inputs[0], Tensor.from_array("w", np.zeros((5, 3), np.float32))], [])
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T.astype(np.float32)
    found = moments_of(node, *[corners] * 8)
    weights = rng.normal(0, 1, (5, 3)).astype(np.float32)
    np.testing.assert_array_equal(
        round_compensated(weights, np.full(5, 0.03), found, 127), np.clip(np.rint(weights / 0.03), -127, 127)
    )


def test_an_input_that_never_changes_is_rounded_to_the_nearest(rng):
    node, _ = linear_node("conv", rng)
    found = moments_of(node, *[np.zeros((8, 9, 8, 4), np.float32)] * 8)
    integers = round_compensated(node.inputs[1].value, np.full(6, 0.1), found, 127)
    np.testing.assert_array_equal(integers, np.rint(node.inputs[1].value / np.float64(0.1)))


@pytest.mark.parametrize("case", ["conv", "volume", "depthwise", "dense"])
def test_what_is_left_of_the_mean_goes_into_the_bias(case, rng):
    node, _ = linear_node(case, rng)
    x = rng.normal(3, 1, (64, *node.inputs[0].shape[1:])).astype(np.float32)
    found = moments_of(node, x)
    weights, axis = node.inputs[1], AXES.get(case, 0)
    channels = weights.shape[axis]
    bias = Tensor.from_array("bias", rng.normal(0, 1, channels).astype(np.float32))
    quantized = quantize_linear(weights, axis, bias, 0.001, 0.1, found)
    real = dequantize(quantized.weights.value, quantized.weights.quantization)
    correction = dequantize(quantized.bias.value, quantized.bias.quantization) - bias.value
    np.testing.assert_allclose(correction, mean_error(weights.value, real, found), atol=1e-4)
    shift = (run(node, x) - run(node, x, real)).reshape(-1, channels).mean(axis=0)
    assert np.abs(shift - correction).max() < 0.3 * np.abs(shift).max()
