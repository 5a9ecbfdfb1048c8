"""Functions that numpy lacks, in floating point and in fixed point."""

import numpy as np
import pytest

from schema.ops import fixed_point_functions as fixed
from schema.ops.special import erf, erfc, logistic


def test_erf_and_erfc():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-27, 27, 50001), np.linspace(-1, 1, 20001), [0.0, -0.0, np.inf, -np.inf]])
    np.testing.assert_allclose(erf(x), special.erf(x), rtol=1e-15, atol=4e-16)
    normal = special.erfc(x) > 1e-300
    np.testing.assert_allclose(erfc(x)[normal], special.erfc(x)[normal], rtol=1e-13)
    for function in (erf, erfc):
        assert np.isnan(function(np.array([np.nan]))).all()
        assert function(x.astype(np.float32)).dtype == np.float32


def test_logistic():
    x = np.array([-1000, -1, 0, 1, 1000.0])
    np.testing.assert_allclose(logistic(x), [0, 1 / (1 + np.e), 0.5, np.e / (1 + np.e), 1])


def test_fixed_point_exp(rng):
    x = -rng.integers(0, 2**31, 10000)
    x[0] = 0
    for bits in (3, 5, 7):
        exact = np.exp(x / 2.0 ** (31 - bits))
        assert np.abs(fixed.exp_on_negative_values(x, bits) / 2.0**31 - exact).max() < 1e-6


def test_fixed_point_reciprocal(rng):
    x = rng.integers(1, 2**31, 10000) >> rng.integers(0, 30, 10000)
    x = np.maximum(x, 1)
    q, right = fixed.reciprocal(x, 12)
    np.testing.assert_allclose(q / 2.0**31 / 2.0**right, 2.0**19 / x, rtol=1e-5)


def test_fixed_point_log(rng):
    x = np.maximum(rng.integers(2**19, 2**31, 10000) >> rng.integers(0, 12, 10000), 2**19)
    assert np.abs(fixed.log_of_at_least_one(x, 12, 5) / 2.0**26 - np.log(x / 2.0**19)).max() < 1e-6


def test_fixed_point_inverse_sqrt():
    x = np.concatenate([np.arange(1, 5000), 2 ** np.arange(13, 31), [2**31 - 1]])
    q, shift = fixed.inverse_sqrt(x)
    np.testing.assert_allclose(q / 2.0**31 * 2.0**shift, 1 / np.sqrt(x), rtol=1e-5)
    assert [int(part) for part in fixed.inverse_sqrt(np.array(0))] == [2**31 - 1, 0]


def test_leading_zeros():
    assert fixed.leading_zeros(np.array([0, 1, 2, 3, 2**30, 2**31 - 1, -1])).tolist() == [32, 31, 30, 30, 1, 1, 0]
