"""Equalization and bias correction are kept where they help on data that they were not fitted to, and nowhere else."""

import numpy as np
import pytest

import schema
from converter.quantize import Options, quantize
from converter.quantize.measure import Reference
from converter.rewriter import copy
from schema import CalibrationError, InputError, evaluate, inference
from schema.fixedpoint import dequantize
from schema.fixedpoint import quantize as to_integers
from tests.support.float_graphs import Builder
from tests.support.unequal_nets import images, inverted_residual


def file_of(graph, options, x):
    graph = copy(graph)
    report = quantize(graph, options, x)
    return schema.write(schema.Model([graph])), report, graph


RARE = 8


def rare_channels(builder, x, name):
    """Two dense layers, of which each of the first RARE units of the first one gets one feature of its own."""
    y = builder.dense(x, 16, name=f"{name}_writer", activation="RELU")
    node = builder.graph.nodes[-1]
    weights, bias = node.inputs[1].value.copy(), node.inputs[2].value.copy()
    weights[:RARE], weights[RARE:, :RARE], bias[:RARE] = np.eye(16)[:RARE], 0, 0
    node.inputs[1:] = builder.constant(weights), builder.constant(bias)
    return builder.dense(y, 8, name=f"{name}_reader")


def rare(rng, count=64):
    """The first RARE features are large in every other sample, and hardly there in the rest."""
    x = np.abs(rng.normal(0, 1, (count, 16))).astype(np.float32)
    x[::2, :RARE] *= 0.001
    return x


def test_equalization_that_hurts_is_dropped(rng):
    """Fitted to the even samples, it stretches channels that the odd ones need."""
    builder = Builder()
    graph = builder.end(rare_channels(builder, builder.input("x", None, 16), "rare"))
    x = rare(rng)
    plain, _, _ = file_of(graph, Options("int8"), x)
    refined, report, _ = file_of(graph, Options("int8", equalize=True), x)
    assert refined == plain
    (note,) = report.notes
    assert note.startswith("equalization: not kept, ")
    before, after = (float(word) for word in note.split() if word.replace(".", "").replace("-", "").isdigit())
    assert after < before - 3


def test_what_helps_is_kept_beside_what_hurts(rng):
    builder = Builder()
    x, image = builder.input("x", None, 16), builder.input("image", None, 12, 12, 3)
    bad = rare_channels(builder, x, "rare")
    y = builder.conv(image, 16, name="wide", activation="RELU")
    factors = np.logspace(0, -3, 16)
    wide = builder.graph.nodes[-1]
    wide.inputs[1] = builder.constant(wide.inputs[1].value * factors.reshape(-1, 1, 1, 1))
    wide.inputs[2] = builder.constant(wide.inputs[2].value * factors)
    y = builder.depthwise(y, name="depthwise")
    depthwise = builder.graph.nodes[-1]
    depthwise.inputs[1] = builder.constant(depthwise.inputs[1].value / factors)
    y = builder.dense(builder.node("MEAN", y, builder.constant([1, 2], np.int32)), 8, name="last")
    graph = builder.end(builder.node("ADD", bad, y, name="sum"))
    data = {"x": rare(rng), "image": images(rng, 64)}
    _, report, quantized = file_of(graph, Options("int8", equalize=True), data)
    (note,) = report.notes
    kept = note.split(": ")[-1].split(", ")
    assert "wide -> depthwise" in kept
    assert "rare_writer -> rare_reader" not in kept
    weights = {node.name: node.inputs[1] for node in quantized.nodes if len(node.inputs) > 1}
    _, _, plain = file_of(graph, Options("int8"), data)
    same = next(node for node in plain.nodes if node.name == "rare_writer").inputs[1]
    np.testing.assert_array_equal(weights["rare_writer"].value, same.value)


def test_bias_correction_is_kept_where_it_helps(rng):
    graph = inverted_residual(spread=100.0)
    inference.annotate(graph)
    x, others = images(rng, 64), images(rng, 64)
    reference = Reference(graph, [[others]])
    _, _, plain = file_of(graph, Options("int8"), x)
    _, report, refined = file_of(graph, Options("int8", bias_correction=True), x)
    (note,) = report.notes
    assert "dB became" in note
    assert note.startswith("bias correction: ")
    assert reference.noise(refined).snr > reference.noise(plain).snr + 1


def test_bias_correction_that_hurts_is_dropped(rng):
    """The odd samples have other means than the even ones it is fitted to."""
    graph = inverted_residual(spread=1.0)
    x = images(rng, 64)
    x[::2] = np.abs(x[::2])
    plain, _, _ = file_of(graph, Options("int8"), x)
    refined, report, _ = file_of(graph, Options("int8", bias_correction=True), x)
    print(report.notes)
    assert refined == plain
    assert report.notes[0].startswith("bias correction: not kept")


def test_both_together_and_integer_inputs_and_outputs(rng):
    graph, x = inverted_residual(), images(rng, 32)
    both = Options("int8", equalize=True, bias_correction=True)
    _, report, inside = file_of(graph, both, x)
    _, _, integer = file_of(graph, Options("int8", io_dtype="int8", equalize=True, bias_correction=True), x)
    assert [note.split(":")[0] for note in report.notes] == ["equalization", "bias correction"]
    assert all(note in str(report) for note in report.notes)
    (given,), (output,) = integer.inputs, integer.outputs
    assert given.dtype == output.dtype == np.int8
    (found,) = evaluate.run(integer, [to_integers(x, given.quantization, np.int8)])
    np.testing.assert_array_equal(dequantize(found, output.quantization), evaluate.run(inside, [x])[0])


@pytest.mark.parametrize("options", [{"method": "int16x8"}, {"int16": "stem"}, {"keep_float": "project"}])
def test_mixed_types(options, rng):
    graph, x = inverted_residual(), images(rng, 32)
    _, report, _ = file_of(graph, Options(**{"method": "int8", **options}, equalize=True, bias_correction=True), x)
    assert len(report.notes) == 2
    if "keep_float" in options:
        assert "project ->" not in report.notes[0]
        assert "-> project" not in report.notes[0]


def test_few_samples_are_judged_by_themselves(rng):
    _, report, _ = file_of(inverted_residual(), Options("int8", equalize=True), images(rng, 8))
    assert "on the same data" in report.notes[0]
    _, report, _ = file_of(inverted_residual(), Options("int8", equalize=True), images(rng, 32))
    assert "on the other half of the data" in report.notes[0]


def test_nothing_to_do(rng):
    builder = Builder()
    x = builder.input("x", None, 6)
    graph = builder.end(builder.node("RELU", x))
    data = rng.normal(0, 1, (32, 6)).astype(np.float32)
    refined, report, _ = file_of(graph, Options("int8", equalize=True, bias_correction=True), data)
    assert report.notes == ["equalization: nothing to do", "bias correction: nothing to do"]
    assert refined == file_of(graph, Options("int8"), data)[0]


def test_iterables_are_read_once_and_give_the_same_file(rng):
    graph, x = inverted_residual(), images(rng, 40)
    options = Options("int8", equalize=True, bias_correction=True)
    whole = file_of(graph, options, x)[0]
    assert file_of(graph, options, iter([x[:32], x[32:]]))[0] == whole


def test_wrong_data_leaves_the_graph_as_it_was(rng):
    graph, x = inverted_residual(), images(rng, 16)
    before = schema.write(schema.Model([graph]))
    for error, data, options in (
        (CalibrationError, x[:, :5], {}),
        (CalibrationError, None, {}),
        (InputError, x, {"keep_float": "nothing"}),
    ):
        with pytest.raises(error):
            quantize(graph, Options("int8", equalize=True, bias_correction=True, **options), data)
    assert schema.write(schema.Model([graph])) == before
