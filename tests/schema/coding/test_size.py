"""How small coded weights are, against what Shannon's zero-order entropy allows."""

import itertools

import numpy as np
import pytest

import converter
import schema
from schema import Constant, Graph, Model, Node, Tensor
from schema.coding.constant import decode, encode
from schema.ops import attributes as a

SPARSITIES = (0.0, 0.5, 0.9, 0.99)


def entropy(values):
    """Zero-order entropy of all values together, in bytes."""
    _, counts = np.unique(values, return_counts=True)
    return float(counts @ -np.log2(counts / counts.sum())) / 8


def weights(count, bits, sparsity, shape, rng):
    """Integers of so many bits, with zeros at random places."""
    draws = {
        "normal": rng.normal(size=count) / 3,
        "uniform": rng.uniform(-1, 1, count),
        "laplace": rng.laplace(size=count) / 6,
    }
    largest = 2 ** (bits - 1) - 1
    levels = np.clip(np.rint(draws[shape] * largest), -largest, largest)
    levels[levels == 0] = 1  # zeros are those of the sparsity alone
    return np.where(rng.random(count) < sparsity, 0, levels).astype(np.int8)


@pytest.mark.parametrize("count", [4096, 20_000, pytest.param(300_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("bits", range(2, 9))
def test_coded_weights_are_as_small_as_their_entropy(bits, count, rng):
    """At most 1.02 of the entropy of positions and values, 64 bytes and the distinct values themselves."""
    for sparsity, shape in zip((0.0, 0.5, 0.7, 0.9, 0.99), itertools.cycle(["normal", "laplace", "uniform"])):
        integers = weights(count, bits, sparsity, shape, rng)
        bound = 1.02 * (entropy(integers != 0) + entropy(integers[integers != 0])) + 64
        distinct = np.unique(integers).size
        centroids = rng.normal(size=256).astype(np.float32)
        centroids[128] = 0
        for values in (integers, centroids[integers.astype(int) + 128]):
            encoded = encode(Constant(values), values.dtype)
            size = sum(len(stream.data) for _, stream in encoded.streams())
            assert size <= bound + distinct * values.itemsize, (sparsity, shape, values.dtype)
            assert decode(encoded, values.shape, values.dtype).values.tobytes() == values.tobytes()


def test_a_sparse_layer(rng):
    """Dense(512) of 512 inputs, 90 % of it zero at random places, int8: the whole file."""
    kernel = np.clip(np.rint(rng.normal(size=(512, 512)) * 127 / 4), -127, 127)
    kernel = np.where(rng.random((512, 512)) < 0.9, 0, kernel).astype(np.int8)
    x, y = Tensor("x", np.float32, (None, 512)), Tensor("y", np.float32)
    scaled = Tensor("w", np.float32, (512, 512), constant=Constant(kernel, rng.random(512).astype(np.float32), 0))
    node = Node("FULLY_CONNECTED", [x, scaled], [y], a.FullyConnectedAttributes(), "dense")
    assert len(schema.write(Model([Graph([node], [x], ["x"], [y], ["y"])]))) <= 45_000


def test_weights_of_a_real_network(shared):
    """The int8 ResNet8 of MLTK: 77,360 weights."""
    data = converter.convert(shared / "models/mltk/image_classification.tflite").bytes
    tensors = {t for t in schema.read(data).graph.tensors() if t.is_constant and t.dtype == np.int8}
    coded = sum(len(s.data) for t in tensors for _, s in encode(t.constant, t.dtype).streams())
    assert sum(t.value.size for t in tensors) == 77_360
    assert coded <= 1.01 * sum(entropy(t.value) for t in tensors)
    assert len(data) <= 80_200
