import math

import numpy as np
import pytest

from converter.quantize import Options, quantize
from converter.quantize.fidelity import Fidelity
from converter.quantize.measure import Noise, Reference
from converter.quantize.samples import FEWEST_TO_SPLIT, count, first, halves, hold
from converter.rewriter import copy
from schema import CalibrationError, evaluate, inference
from tests.support.float_graphs import Builder


def of(*pairs):
    fidelity = Fidelity()
    for real, approximation in pairs:
        fidelity.add(np.asarray(real, np.float32), np.asarray(approximation, np.float32))
    return fidelity


def test_fidelity_does_not_depend_on_how_arrays_are_cut(rng):
    x = rng.normal(0, 1, (6, 50)).astype(np.float32)
    y = x + rng.normal(0, 0.01, x.shape).astype(np.float32)
    whole, parts = of((x, y)), of(*zip(x, y, strict=True))
    assert whole.snr == pytest.approx(20 * np.log10(np.linalg.norm(x) / np.linalg.norm(y - x)), abs=1e-4)
    assert whole.cosine == pytest.approx(np.sum(x * y) / np.linalg.norm(x) / np.linalg.norm(y), abs=1e-6)
    assert whole.max_error == np.abs(y - x).max()
    assert (parts.snr, parts.cosine) == (pytest.approx(whole.snr), pytest.approx(whole.cosine))
    assert (parts.max_error, parts.elements) == (whole.max_error, 300)


def test_fidelity_at_its_ends():
    assert (of(([1], [1])).snr, of(([1], [1])).cosine) == (math.inf, 1)
    assert (of(([0], [0])).snr, of(([0], [0])).cosine) == (math.inf, 1)
    assert (of(([0], [1])).snr, of(([0], [1])).cosine) == (-math.inf, 0)
    assert of(([1, np.inf], [1, 0])).snr == math.inf
    assert of(([np.nan], [0])).elements == 0


def graph(batch=None):
    builder = Builder()
    x = builder.input("x", batch, 3)
    return builder.end(builder.dense(x, 2, name="one"), builder.dense(x, 2, name="two"))


def test_halves_take_every_other_sample(rng):
    x = rng.normal(0, 1, (37, 3)).astype(np.float32)
    fit, judge = halves(graph(), hold(graph(), x))
    np.testing.assert_array_equal(np.concatenate([b[0] for b in fit]), np.concatenate([x[:32:2], x[32::2]]))
    assert (count(fit), count(judge)) == (19, 18)
    assert count(halves(graph(), [[x[i : i + 1]] for i in range(37)])[1]) == 18


def test_halves_take_every_other_batch_where_its_size_is_fixed(rng):
    x = rng.normal(0, 1, (40, 3)).astype(np.float32)
    fit, judge = halves(graph(4), hold(graph(4), x))
    assert [len(b[0]) for b in fit] == [len(b[0]) for b in judge] == [4] * 5
    np.testing.assert_array_equal(judge[0][0], x[4:8])


def test_few_samples_are_not_split(rng):
    batches = hold(graph(), rng.normal(0, 1, (FEWEST_TO_SPLIT - 1, 3)).astype(np.float32))
    assert halves(graph(), batches) == (batches, batches)
    whole = hold(graph(40), rng.normal(0, 1, (40, 3)).astype(np.float32))
    assert halves(graph(40), whole) == (whole, whole)


def test_first_batches(rng):
    batches = [[np.zeros((n, 3), np.float32)] for n in (8, 8, 4, 8)]
    for samples, expected in ((1, 1), (8, 1), (19, 2), (20, 3), (100, 4)):
        assert first(batches, samples) == batches[:expected]


def test_held_data_is_checked(rng):
    with pytest.raises(CalibrationError, match="'x'"):
        hold(graph(), np.zeros((4, 5), np.float32))


def test_all_outputs_count(rng):
    real, other = graph(), graph()
    inference.annotate(real)
    x = rng.normal(0, 1, (20, 3)).astype(np.float32)
    reference = Reference(real, hold(real, x))
    assert reference.noise(other).snr == math.inf
    node = other.nodes[1]
    node.inputs[2] = Builder().constant(node.inputs[2].value + 0.1)
    found = reference.fidelities(other)
    assert found["output0"].snr == math.inf
    assert found["output1"].max_error == pytest.approx(0.1, abs=1e-6)
    # One of two outputs is exact, so that the mean of noise to signal is half the other's.
    assert reference.noise(other).snr == pytest.approx(found["output1"].snr + 10 * np.log10(2))
    assert reference.noise(other).samples.shape == (20,)


def test_standard_error_of_a_gain(rng):
    """Against the spread of gains over many draws of samples."""
    gains, errors = [], []
    for _ in range(300):
        a, b = rng.chisquare(3, (2, 80))
        gain, error = Noise(0.5 * b).gain_over(Noise(a))
        gains.append(gain)
        errors.append(error)
    assert np.mean(gains) == pytest.approx(10 * np.log10(2), abs=0.1)
    assert np.mean(errors) == pytest.approx(np.std(gains), rel=0.15)
    assert Noise(np.ones(4)).gain_over(Noise(np.ones(4))) == (0, 0)
    assert Noise(np.zeros(4)).gain_over(Noise(np.ones(4))) == (math.inf, 0)
    assert Noise(np.zeros(4)).gain_over(Noise(np.zeros(4))) == (0, 0)


def softmax_net(shift=0.0, scale=1.0):
    builder = Builder()
    x = builder.input("x", None, 3)
    y = builder.dense(x, 5)
    node = builder.graph.nodes[0]
    node.inputs[2] = builder.constant(node.inputs[2].value + np.float32(shift))
    node.inputs[1] = builder.constant(np.float32(scale) * node.inputs[1].value)
    return builder.end(builder.node("SOFTMAX", y))


def test_scores_are_what_a_softmax_tells_apart(rng):
    x = rng.normal(0, 1, (20, 3)).astype(np.float32)
    real = softmax_net()
    inference.annotate(real)
    scores, outputs = (Reference(real, [[x[:7]], [x[7:]]], scores=on) for on in (True, False))
    assert scores.noise(softmax_net(shift=3.0)).snr > 100
    logits = evaluate.run(real, [x], keep=[real.nodes[0].outputs[0]])[1]
    wrong = evaluate.run(softmax_net(scale=1.1), [x], keep=[])[0]
    bias = real.nodes[0].inputs[2].value
    error = 0.1 * (logits - bias)
    centred = [a - a.mean(axis=1, keepdims=True) for a in (logits, error)]
    expected = 10 * np.log10(np.square(centred[0]).sum() / np.square(centred[1]).sum())
    assert scores.noise(softmax_net(scale=1.1)).snr == pytest.approx(expected, abs=1e-3)
    probabilities = evaluate.run(real, [x])[0]
    expected = 10 * np.log10(np.square(probabilities).sum() / np.square(wrong - probabilities).sum())
    assert outputs.noise(softmax_net(scale=1.1)).snr == pytest.approx(expected, abs=1e-3)


def test_scores_of_quantized_graphs(rng):
    x = rng.normal(0, 1, (40, 3)).astype(np.float32)
    real = softmax_net()
    inference.annotate(real)
    reference = Reference(real, hold(real, x), scores=True)
    for io_dtype in (None, "int8"):
        graph = copy(real)
        quantize(graph, Options("int8", io_dtype=io_dtype), x)
        assert 30 < reference.noise(graph).snr < 60
