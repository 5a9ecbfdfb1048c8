"""LOCAL_RESPONSE_NORMALIZATION against LiteRT and TensorFlow's formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ShapeError, ops
from schema.ops.attributes import LocalResponseNormalizationAttributes
from tests.support.drawing import generators, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_agrees, assert_parity, run_reference

OP = "LOCAL_RESPONSE_NORMALIZATION"


@given(st.data())
def test_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape = draw(shapes(4, 4, 1, 12))
    attributes = LocalResponseNormalizationAttributes(
        draw(st.integers(0, 15)), *(draw(st.floats(low, 2, width=32)) for low in (0.5, 0.0, 0.0))
    )
    x = rng.normal(0, 5, shape).astype(np.float32)
    squares, radius = np.square(x.astype(np.float64)), attributes.radius
    sums = [squares[..., max(0, i - radius) : i + radius + 1].sum(-1) for i in range(shape[-1])]
    expected = x / (attributes.bias + attributes.alpha * np.stack(sums, -1)) ** attributes.beta
    assert_agrees(OP, attributes, [Operand(x)], expected)
    # LiteRT's sums gain a square and lose another at each channel, which costs it some digits.
    assert_parity(OP, attributes, [Operand(x)], tolerance=1e-5)


def test_the_formula():
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    (y,) = run_reference(OP, LocalResponseNormalizationAttributes(1, 1.0, 0.5, 2.0), [Operand(x)])
    np.testing.assert_allclose(y, x / (1 + 0.5 * np.array([5, 14, 29, 25])) ** 2, rtol=1e-6)


@pytest.mark.parametrize(("field", "value"), [("radius", -1), ("bias", np.inf), ("alpha", np.nan), ("beta", -np.inf)])
def test_refusals(field, value):
    with pytest.raises(ShapeError, match=field):
        ops.get(OP).check(LocalResponseNormalizationAttributes(**{field: value}))


def test_no_channels():
    (y,) = run_reference(OP, LocalResponseNormalizationAttributes(), [Operand(np.zeros((2, 0), np.float32))])
    assert y.shape == (2, 0)
