import numpy as np
import pytest

from converter.quantize import observers
from converter.quantize.observers import Entropy, Histogram, MinMax, Percentile
from schema import InputError


def seen(observer, *arrays):
    for array in arrays:
        observer.see(np.asarray(array, np.float32))
    return observer


def test_minmax_is_the_smallest_and_the_largest_value(rng):
    x = rng.normal(0, 3, (4, 50)).astype(np.float32)
    assert seen(MinMax(), *x).range() == (x.min(), x.max())


@pytest.mark.parametrize("name", observers.OBSERVERS)
def test_nothing_seen_and_only_zeros_give_an_empty_range(name):
    assert observers.create(name).range() == (0, 0)
    assert seen(observers.create(name), np.zeros(9), np.zeros(0)).range() == (0, 0)


@pytest.mark.parametrize("name", observers.OBSERVERS)
def test_batches_and_their_order_do_not_matter(name, rng):
    x = (rng.normal(0, 1, 4000) ** 3).astype(np.float32)
    whole = seen(observers.create(name), x).range()
    assert seen(observers.create(name), *np.split(np.sort(x), 40)).range() == whole
    assert seen(observers.create(name), *np.split(np.sort(x)[::-1], 8)).range() == whole


def test_histogram_counts_every_value_in_its_bin(rng):
    x = np.concatenate([rng.normal(0, 1e-3, 500), [7.9, -3.0, 0.0]]).astype(np.float32)
    histogram = seen(Histogram(), *np.array_split(x, 7))
    edges = (np.arange(2 * observers.HALF_BINS + 1) - observers.HALF_BINS) * histogram.width
    np.testing.assert_array_equal(histogram.counts, np.histogram(x, edges)[0])
    assert histogram.counts[observers.HALF_BINS // 2 + observers.HALF_BINS - 1 :].any()  # 7.9 is in the outer half


def test_histogram_of_numbers_near_the_smallest_float32():
    histogram = seen(Histogram(), [1e-40, -2e-40, 0])
    assert histogram.counts.sum() == 3
    assert histogram.counts[observers.HALF_BINS :].sum() == 2


@pytest.mark.parametrize("percentile", [99.0, 99.9, 100.0])
def test_percentile_leaves_out_both_tails(percentile, rng):
    x = rng.normal(0.5, 1, 100_000).astype(np.float32)
    observer = seen(Percentile(percentile), *np.split(x, 10))
    tail = (100 - percentile) / 2
    expected = np.percentile(x, [tail, 100 - tail])
    np.testing.assert_allclose(observer.range(), expected, atol=2 * observer.width)


def test_percentile_of_a_relu_keeps_zero():
    assert seen(Percentile(99.0), np.maximum(np.linspace(-1, 1, 1001), 0)).range()[0] == 0


def test_entropy_cuts_far_outliers_and_keeps_a_uniform_range(rng):
    bulk = rng.normal(0, 1, 100_000)
    low, high = seen(Entropy(), bulk, [300.0]).range()
    assert -6 < low < -2
    assert 2 < high < 100
    low, high = seen(Entropy(), rng.uniform(0, 2, 100_000)).range()
    assert low >= 0
    assert high == pytest.approx(2, rel=0.01)


def test_a_range_is_never_wider_than_what_was_seen(rng):
    x = np.abs(rng.normal(0, 1, 1000)).astype(np.float32)
    for name in observers.OBSERVERS:
        low, high = seen(observers.create(name), x).range()
        assert x.min() <= low <= high <= x.max()


def test_unknown_observer_and_percentile_are_refused():
    with pytest.raises(InputError, match="minmax, percentile, entropy"):
        observers.create("median")
    with pytest.raises(InputError, match="percentile is 20"):
        Percentile(20)
