"""Dead channels of whole Keras nets: the file computes what the net does, by fewer of them."""

import numpy as np
import pytest

import converter
import runtime
import xnn_tf
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


UNUSUAL = {
    "transposed convolution, flattened": lambda L, x: L.Flatten()(L.Conv2DTranspose(6, 3, strides=2, name="up")(x)),
    "axes joined to the batch": lambda L, x: L.TimeDistributed(L.Conv1D(7, 3, name="conv"), name="each")(x),
    "cropping": lambda L, x: L.Conv2D(6, 3, name="second")(L.Cropping2D(1)(L.ZeroPadding2D(2)(x))),
    "slopes of each place": lambda L, x: L.Conv2D(6, 3, name="second")(L.PReLU()(x)),
    "repetition": lambda L, x: L.Conv1D(5, 3, name="second")(L.RepeatVector(4)(L.GlobalAveragePooling2D()(x))),
}


@pytest.mark.parametrize("between", UNUSUAL)
def test_the_file_is_as_small_as_that_of_the_smaller_model(rng, between):
    """As many weights as when `xnn_tf.shrink` has been there first, and the same results."""
    keras = pytest.importorskip("tf_keras")
    L = keras.layers
    keras.utils.set_random_seed(20)
    inputs = L.Input((9, 9, 3))
    x = UNUSUAL[between](L, L.Conv2D(8, 3, padding="same", name="first")(inputs))
    model = keras.Model(inputs, L.Dense(2, name="last")(x))
    randomize(model, rng)
    kill(model, rng, ways=("columns", "rows"))
    result, small = converter.convert(model), converter.convert(xnn_tf.shrink(model))
    assert any("first: 4 of 8" in line for line in result.report.explanation.of("remove_dead_channels"))
    assert [x.parameters for x in result.report.layers] == [x.parameters for x in small.report.layers]
    images = rng.normal(size=(3, 9, 9, 3)).astype(np.float32)
    expected = np.asarray(model(images, training=False))
    assert np.abs(expected[0] - expected[1]).max() > 1e-4
    np.testing.assert_allclose(runtime.load(result.bytes)(images), expected, atol=1e-5 * max(1, np.abs(expected).max()))
