import numpy as np
import pytest

from converter.quantize.weights import quantize_linear
from schema import Constant, Tensor
from schema.fixedpoint import dequantize
from tests.support.float_graphs import clustered


def kernel(rng, shape=(8, 3, 3, 4)):
    return rng.normal(0, 1, shape).astype(np.float32)


def linear(weights, axis=0, bias=None, input_scale=0.05, output_scale=0.1):
    weights = weights if isinstance(weights, Tensor) else Tensor.from_array("weights", weights)
    bias = None if bias is None else Tensor.from_array("bias", np.asarray(bias, np.float32))
    return quantize_linear(weights, axis, bias, input_scale, output_scale)


def real(tensor):
    return dequantize(tensor.value, tensor.quantization)


@pytest.mark.parametrize(("shape", "axis"), [((8, 3, 3, 4), 0), ((1, 3, 3, 8), 3), ((8, 20), 0)])
def test_each_channel_uses_its_whole_range(rng, shape, axis):
    sizes = np.geomspace(1e-4, 1e3, 8, dtype=np.float32).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    weights = kernel(rng, shape) * sizes
    quantized = linear(weights, axis).weights
    others = tuple(i for i in range(len(shape)) if i != axis)
    assert quantized.dtype == np.int8
    assert quantized.quantization.axis == axis
    assert not quantized.quantization.zero_point.any()
    np.testing.assert_array_equal(np.abs(quantized.value).max(others), 127)
    step = quantized.quantization.broadcast(len(shape))[0]
    assert (np.abs(real(quantized) - weights) <= 0.5001 * step).all()


def test_bias_has_the_scale_of_the_products(rng):
    bias = rng.normal(0, 1, 8)
    quantized = linear(kernel(rng), 0, bias)
    assert quantized.bias.dtype == np.int32
    np.testing.assert_array_equal(
        quantized.bias.quantization.scale, np.float32(0.05) * quantized.weights.quantization.scale
    )
    np.testing.assert_allclose(real(quantized.bias), bias, atol=1e-3)


def test_pruned_weights_stay_zero_and_others_are_not_pruned(rng):
    weights = kernel(rng)
    weights[np.abs(weights) < 0.5] = 0
    quantized = linear(weights).weights.value
    np.testing.assert_array_equal(quantized == 0, weights == 0)


def test_a_bias_too_large_for_int32_raises_its_channels_scale(rng):
    weights, bias = kernel(rng) * 1e-7, np.zeros(8)
    bias[3] = 50
    quantized = linear(weights, 0, bias)
    np.testing.assert_allclose(real(quantized.bias)[3], 50, rtol=1e-6)
    scale = quantized.weights.quantization.scale
    assert scale[3] > 10 * np.delete(scale, 3).max()
    assert (np.abs(real(quantized.weights) - weights)[3] <= 0.5001 * scale[3]).all()


def test_a_channel_without_weights_is_its_bias(rng):
    weights, bias = kernel(rng), np.full(8, 1e-3)
    weights[2] = 0
    for tensor in (weights, np.zeros_like(weights)):
        quantized = linear(tensor, 0, bias, input_scale=1e-3, output_scale=1e-4)
        assert not quantized.weights.value[2].any()
        np.testing.assert_allclose(real(quantized.bias)[2], 1e-3, atol=1e-4 / 100)


@pytest.mark.parametrize("axis", [0, 3])
def test_clusters_survive_channel_factors(rng, axis):
    factors = rng.normal(0, 1, (8, 3, 3, 8)[axis])
    weights = clustered(kernel(rng, (8, 3, 3, 8)), 16, factors, axis)
    quantized = linear(weights, axis, np.ones(8))
    assert quantized.distinct == 16
    stored = quantized.weights.constant
    assert np.unique(stored.values).size == 16
    assert stored.values.dtype == np.int8
    np.testing.assert_array_equal(stored.channel_scale, np.sign(factors))  # a negative factor flips the integers
    step = quantized.weights.quantization.broadcast(4)[0]
    assert (np.abs(real(quantized.weights) - weights.value) <= 0.5001 * 2 * step).all()


def test_clusters_close_to_each_other_stay_distinct(rng):
    centers = np.array([-0.0199, -0.0101, 0, 0.01, 0.02, 0.03, 0.9984, 1], np.float32)
    weights = centers[rng.integers(0, centers.size, (8, 50))]
    quantized = linear(weights).weights.value
    assert np.unique(quantized).size >= centers.size - 1  # 0.9984 and 1 are less than half a step apart
    np.testing.assert_array_equal(quantized == 0, weights == 0)


def test_integers_with_channel_scales_are_taken_as_they_are(rng):
    integers = rng.integers(-100, 101, (8, 200)).astype(np.int8)
    weights = Tensor("weights", np.float32)
    weights.set_constant(Constant(integers, rng.uniform(0.01, 1, 8).astype(np.float32), 0))
    quantized = linear(weights).weights
    np.testing.assert_array_equal(quantized.value, integers)
    np.testing.assert_allclose(quantized.quantization.scale, weights.constant.channel_scale)


def test_channel_scale_on_another_axis_and_zero_factors(rng):
    other_axis = clustered(kernel(rng), 16, rng.uniform(1, 2, 4), 3)
    assert linear(other_axis).distinct is None
    factors = np.ones(8)
    factors[5] = 0
    quantized = linear(clustered(kernel(rng), 16, factors), 0, np.ones(8)).weights
    assert not quantized.value[5].any()
    assert (quantized.quantization.scale > 0).all()


def test_tiny_weights_do_not_divide_by_zero(rng):
    with np.errstate(all="raise"):
        quantized = linear(kernel(rng) * np.float32(1e-34), 0, np.ones(8))
    assert np.isfinite(quantized.weights.quantization.scale).all()
    assert (quantized.weights.quantization.scale > 0).all()
