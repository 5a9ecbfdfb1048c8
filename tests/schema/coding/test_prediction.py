"""Channel scales and biases by what their weights let expect of them, as folded BatchNorm makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import schema
from schema import Constant, container, metadata
from schema.coding import codecs, prediction
from schema.coding.constant import decode, encode
from schema.errors import FormatError
from tests.support.folded import CHANNELS, DEPTH, dense_model, folded_layer

FLOAT = np.dtype(np.float32)


@pytest.fixture
def folded(rng):
    return folded_layer(rng)


def file_of(kernel, *biases):
    return schema.write(dense_model(kernel, biases, [f"dense{i}" for i in range(len(biases))]))


def constants_of(file):
    return [t["constant"] for t in metadata.read(container.unpack(file))["graphs"][0]["tensors"] if t["constant"]]


def test_files_hold_differences(folded):
    file = file_of(*folded)
    kernel, bias = constants_of(file)
    assert kernel["scale_factor"] > 0 > bias["factor"] and bias["kernel"] == 1
    assert kernel["channel_scale"]["size"] < 0.9 * len(codecs.encode(folded[0].channel_scale).data)
    assert bias["values"]["size"] < 0.8 * len(encode(folded[1], FLOAT).values.data)
    assert metadata.read(container.unpack(file))["minimum_reader"] == 4
    _, weights, biases = schema.read(file).graph.nodes[0].inputs
    assert weights.constant.channel_scale.tobytes() == folded[0].channel_scale.tobytes()
    assert biases.value.tobytes() == folded[1].values.tobytes()


def test_biases_that_layers_share_stand_for_themselves(folded):
    kernel, bias = folded
    other = Constant(np.roll(kernel.values, 1, 0), kernel.channel_scale, 0)
    for stored in constants_of(file_of(kernel, bias, bias)) + constants_of(file_of(other, bias, bias)):
        assert stored["factor"] == 0


@pytest.mark.parametrize("factor", [1e-30, -3.5, 700.0, 3e38])
def test_any_factor_gives_all_biases_back(folded, rng, factor):
    """What is far from what is expected too: differences are modulo 256."""
    kernel, _ = folded
    integers = rng.integers(-127, 128, CHANNELS).astype(np.int8)
    integers[0] = 127
    bias = Constant((integers * 2.0**-5).astype(np.float32))
    encoded = replace(
        encode(bias, FLOAT),
        values=codecs.encode_differences(integers, 2.0**-5, prediction.of_biases(kernel, factor)),
        factor=factor,
    )
    assert decode(encoded, (CHANNELS,), FLOAT, kernel).dense(FLOAT).tobytes() == bias.values.tobytes()


def test_predictions_by_hand():
    values = np.array([[3, 4, 0], [0, 0, 0], [-1, 0, 0], [100, 100, 100]], np.int8)
    kernel = Constant(values, np.array([0.5, 2, np.inf, 1], np.float32), 0)
    assert prediction.of_scales(values, 0, 63.0).tolist() == [13, 63, 63, 0]  # 12.6, no weights as if the sum were 1
    assert prediction.of_biases(kernel, 1.0).tolist() == [4, 0, 0, 44]  # 3.5 to even, -infinity as -2^31, 300 mod 256


def test_hostile_predictions(folded):
    kernel, bias = folded
    sound = encode(bias, FLOAT, kernel)
    assert sound.factor
    whole = Constant(kernel.values.astype(np.float32), kernel.channel_scale, 0)
    cases = {
        "no kernel of so many channels": [(sound, None), (sound, whole), (sound, Constant(kernel.values)),
                                          (sound, Constant(kernel.values[1:], kernel.channel_scale[1:], 0))],
        "a factor of nan": [(replace(sound, factor=float("nan")), kernel)],
        "but no step": [(replace(sound, values=replace(sound.values, step=0.0)), kernel)],
        "by a codebook or positions": [(replace(sound, codebook=sound.values), kernel)],
    }  # fmt: skip
    for message, tried in cases.items():
        for encoded, given in tried:
            with pytest.raises(FormatError, match=message):
                decode(encoded, (CHANNELS,), FLOAT, given)
    scaled = replace(encode(whole, FLOAT), channel_scale=codecs.encode(kernel.channel_scale), scale_factor=3.0)
    with pytest.raises(FormatError, match="expected from values of"):
        decode(scaled, (CHANNELS, DEPTH), FLOAT)
