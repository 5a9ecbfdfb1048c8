"""Advice: measured, in words that the converter takes."""

import json
import math
import shlex

import numpy as np
import pytest

import converter
import converter.debug
import runtime
from converter.__main__ import parse
from converter.debug import Advice, Trial
from converter.debug.advice import arguments_of
from converter.quantize import Options


@pytest.fixture(scope="module")
def model():
    """A net of which one layer, `narrow`, makes nearly all of the error: of its units one is 300 times larger."""
    import keras

    keras.utils.set_random_seed(7)
    L = keras.layers
    x = keras.Input((24,), name="features")
    y = L.Dense(32, activation="relu", name="first")(x)
    y = L.Dense(32, activation="relu", name="narrow")(y)
    y = L.Dense(32, activation="relu", name="third")(y)
    built = keras.Model(x, L.Dense(6, name="scores")(y))
    kernel, bias = built.get_layer("narrow").get_weights()
    kernel[:, 0] = 300 * np.abs(kernel[:, 0])
    built.get_layer("narrow").set_weights([kernel, bias])
    kernel, bias = built.get_layer("third").get_weights()
    kernel[0] /= 300
    built.get_layer("third").set_weights([kernel, bias])
    return built


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(5).normal(size=(64, 24)).astype(np.float32)


@pytest.fixture(scope="module")
def comparison(model, samples):
    return converter.debug.compare(model, samples)


def snr(model, samples, *arguments):
    options = parse(["source", "output", *arguments])
    kept: dict = {"keep_float": ",".join(options.keep_float), "int16": ",".join(options.int16)}
    kept |= {"equalize": options.equalize, "bias_correction": options.bias_correction}
    result = converter.convert(model, options.quantize, samples, **kept)
    found, expected = runtime.load(result.bytes).predict(samples), model.predict(samples, verbose=0)
    return 10 * np.log10(np.sum(expected**2) / np.sum((found - expected) ** 2))


def test_advice_names_the_layers_that_matter(comparison):
    advice = comparison.advice
    assert advice.baseline == pytest.approx(comparison.snr)
    assert advice.baseline < 20
    assert {layer for layer, _ in advice.alone[:2]} == {"narrow", "third"}
    assert advice.alone[1][1] < advice.alone[2][1] - 15
    kept = [t for t in advice.trials if set(t.options.keep_float) == {"narrow", "third"}]
    assert kept[0].snr > advice.baseline + 30
    # Of what gains nearly as much as anything, what costs nothing when the model runs is advised.
    assert advice.best is advice.trials[0]
    assert advice.best.options.equalize
    assert advice.best.snr > advice.baseline + 30


def test_every_trial_keeps_its_promise(comparison, model, samples):
    for trial in (comparison.advice.best, comparison.advice.trials[0], comparison.advice.trials[-1]):
        assert snr(model, samples, *shlex.split(trial.arguments)) == pytest.approx(trial.snr, abs=0.05)
    assert snr(model, samples, "--quantize", "int8") == pytest.approx(comparison.advice.baseline, abs=0.05)


def test_advice_is_printed_and_written(comparison):
    text = str(comparison)
    assert text.splitlines()[-1].startswith(f"advice: {comparison.advice.best.arguments}  (")
    assert "quantized alone" in text
    written = json.loads(json.dumps(comparison.to_json()))["advice"]
    assert written["best"] == comparison.advice.best.arguments
    assert written["trials"][0]["method"] == "int8"
    assert written["alone"][0]["layer"] == comparison.advice.alone[0][0]


def trial(snr, *layers):
    return Trial(Options("int8", keep_float=layers), f"--keep-float {','.join(layers)}", snr)


def test_best_is_the_first_that_gains_nearly_as_much_as_any():
    trials = [trial(22, "a"), trial(29, "a", "b"), trial(30, "a", "b", "c")]
    assert Advice(20, trials, []).best is trials[1]
    assert Advice(29.5, trials, []).best is None
    assert Advice(20, [trial(38.5, "a"), trial(90, "a", "b")], []).best.snr == 38.5
    assert "45.0 dB are good" in str(Advice(45, [trial(60, "a")], []))
    assert "leave the model as it is" in str(Advice(29.5, trials, []))
    assert Advice(20, [], []).best is None
    assert Advice(math.inf, [trial(math.inf, "a")], []).best is None


def test_arguments_can_be_pasted():
    options = Options("int8", keep_float=["head/*", "a b"], bias_correction=True)
    assert arguments_of(options) == "--quantize int8 --keep-float 'head/*,a b' --bias-correction"
    parsed = parse(["in", "out", *shlex.split(arguments_of(Options("int8", int16=["x[*]"])))])
    assert (parsed.quantize, parsed.int16) == ("int8", ["x[*]"])
