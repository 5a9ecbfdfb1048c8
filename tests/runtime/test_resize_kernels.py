"""Bilinear resizing, equal to the reference."""

import numpy as np
import pytest

from schema import Node, Quantization, Tensor
from schema.ops.attributes import ResizeAttributes
from tests.support.engine import compare


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("size", [(8, 15), (4, 5), (3, 2), (13, 11), (1, 1)])
@pytest.mark.parametrize("flags", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
def test_resize_bilinear(dtype, size, flags, rng):
    values = (
        rng.standard_normal((2, 4, 5, 7)).astype(dtype)
        if dtype == np.float32
        else rng.integers(-128, 128, (2, 4, 5, 7), np.int8)
    )
    quantization = None if dtype == np.float32 else Quantization(0.1, -3)
    x, y = Tensor("x", dtype, (None, 4, 5, 7), quantization), Tensor("y", dtype, quantization=quantization)
    target = Tensor.from_array("size", np.array(size, np.int32))
    rtol = 1e-6 if dtype == np.float32 else 0.0
    compare(
        [Node("RESIZE_BILINEAR", [x, target], [y], ResizeAttributes(**flags))], [x], [y], [values], rtol=rtol, threads=2
    )
