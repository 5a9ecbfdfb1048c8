"""k-means on a line."""

import itertools

import numpy as np
import pytest

from schema import InputError
from xnn_tf.clustering import codebook, nearest


def error(weights, values):
    return float(np.sum((weights - values[nearest(weights, values)]) ** 2))


def best_error(weights, clusters):
    """Of all ways to cut the sorted weights into that many intervals."""
    ordered = np.sort(weights)
    cuts = itertools.combinations(range(1, weights.size), clusters - 1)
    return min(sum(float(np.sum((part - part.mean()) ** 2)) for part in np.split(ordered, cut)) for cut in cuts)


@pytest.mark.parametrize("init", ["kmeans++", "linear", "density"])
def test_near_the_best_of_all_partitions(rng, init):
    weights = rng.normal(size=24)
    values = codebook(weights, 4, init)
    assert values.size == 4
    assert error(weights, values.astype(np.float64)) <= 1.5 * best_error(weights, 4)
    members = nearest(weights, values)
    for index, value in enumerate(values):  # each is the mean of what is nearest to it
        assert value == pytest.approx(weights[members == index].mean(), rel=1e-6)


@pytest.mark.parametrize("init", ["kmeans++", "linear", "density"])
def test_zeros_do_not_count_and_few_values_stay_as_they_are(rng, init):
    weights = rng.normal(size=(40, 30)).astype(np.float32)
    weights[rng.random(weights.shape) < 0.6] = 0
    values = codebook(weights, 16, init)
    assert values.size <= 16 and (values != 0).all() and (np.diff(values) > 0).all()
    shared = np.where(weights == 0, 0, values[nearest(weights, values)])
    np.testing.assert_array_equal(codebook(shared, 16, init), np.unique(shared[shared != 0]))


def test_nearest_is_nearest(rng):
    values = np.unique(rng.normal(size=9).astype(np.float32))
    weights = rng.normal(size=200).astype(np.float32)
    np.testing.assert_array_equal(nearest(weights, values), np.abs(weights[:, None] - values).argmin(axis=1))


def test_nothing_but_zeros():
    assert codebook(np.zeros(9), 4).size == 0


def test_an_unknown_start_is_refused():
    with pytest.raises(InputError, match="kmeans"):
        codebook(np.arange(100.0), 4, "forgy")
