import numpy as np
import pytest

from converter.quantize.kernel_grid import integers_on_grid


@pytest.mark.parametrize("most", [127, 7, 1, 100])
@pytest.mark.parametrize("axis", [0, 2])
def test_the_integers_of_a_trained_kernel_are_found(rng, most, axis):
    shape = [3, 4, 5]
    integers = rng.integers(-most, most + 1, shape).astype(np.int8)
    np.moveaxis(integers, axis, 0)[:, 0, 0] = most
    step = rng.uniform(1e-4, 3, shape[axis])
    along = np.moveaxis(np.ones(shape), axis, -1) * step
    real = integers.astype(np.float32) * np.moveaxis(along, -1, axis).astype(np.float32)
    found, steps = integers_on_grid(real, axis)
    reach = np.moveaxis(integers, axis, 0).reshape(shape[axis], -1)
    whole = np.moveaxis(found, axis, 0).reshape(shape[axis], -1)
    # Any common divisor of a channel's integers may be in the step.
    np.testing.assert_allclose(whole * steps[:, None], reach * step[:, None], rtol=1e-6)
    if most in (127, 7):
        np.testing.assert_array_equal(found, integers)


def test_other_kernels_are_on_no_grid(rng):
    assert integers_on_grid(rng.normal(size=(8, 20)).astype(np.float32), 0) is None
    kernel = rng.integers(-127, 128, (8, 20)).astype(np.float32)
    kernel[3] = rng.normal(size=20)
    assert integers_on_grid(kernel, 0) is None


def test_channels_of_zeros_stay_zeros():
    found, steps = integers_on_grid(np.array([[0, 0], [127, -3]], np.float32), 0)
    assert found.tolist() == [[0, 0], [127, -3]] and steps.tolist() == [0, 1]
