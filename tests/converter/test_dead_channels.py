"""Dead channels of whole Keras nets: the file computes what the net does, by fewer of them."""

import numpy as np
import pytest

import converter
import runtime
from tests.support.dead_neurons import calibrate, kill, load_zoo, randomize


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenet_5", "resnet20", "squeezenet_cifar"])
def test_zoo_nets(rng, shared, name):
    keras = pytest.importorskip("keras")
    model = load_zoo(shared, name, keras)
    x = rng.normal(size=(4, *model.input_shape[1:])).astype(np.float32)
    randomize(model, rng)
    whole = len(converter.convert(model).bytes)
    kill(model, rng)
    calibrate(model, x)
    expected = np.asarray(model(x, training=False))
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    result = converter.convert(model)
    assert any("channels removed" in line for line in result.report.explanation.of("remove_dead_channels"))
    assert len(result.bytes) < 0.4 * whole
    got = runtime.load(result.bytes)(x)
    np.testing.assert_allclose(got, expected, atol=2e-5 * max(1.0, np.abs(expected).max()))
