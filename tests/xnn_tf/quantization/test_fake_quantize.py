"""Steps, scales and biases: rounded as the converter rounds them, in graphs too."""

import numpy as np
import tensorflow as tf

from xnn_tf.quantization.fake_quantize import round_bias, scale_and_zero_point, steps_of


def test_a_graph_divides_where_it_could_multiply_by_a_reciprocal(rng):
    kernel = rng.normal(size=(3, 5000)).astype(np.float32)
    steps = tf.function(lambda k: steps_of(k, (0,), 8))(tf.constant(kernel)).numpy()
    np.testing.assert_array_equal(steps[0], np.abs(kernel).max(0) / np.float32(127))
    scales = tf.function(lambda high: scale_and_zero_point(tf.zeros(()), high, 8)[0])
    highs = rng.uniform(0.1, 9, 200).astype(np.float32)
    np.testing.assert_array_equal([scales(tf.constant(high)).numpy() for high in highs], highs / np.float32(255))


def test_biases_near_ties_are_rounded_as_the_converter_does(rng):
    """Where float32 cannot tell on which side of a tie a quotient lies."""
    steps = rng.uniform(1e-3, 2e-3, 2000).astype(np.float32)
    bias = ((rng.integers(20_000, 60_000, 2000) + 0.5) * steps).astype(np.float32)
    exact = np.rint(bias.astype(np.float64) / steps)
    assert (np.rint(bias / steps) != exact).any()
    rounded = tf.function(round_bias)(tf.constant(bias), tf.constant(steps)).numpy()
    np.testing.assert_array_equal(np.rint(rounded.astype(np.float64) / steps), exact)
