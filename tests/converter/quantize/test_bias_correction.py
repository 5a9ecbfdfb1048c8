"""Bias correction: means that earlier layers shifted come back."""

import numpy as np
import pytest

from converter.linear import bias_of
from converter.quantize import Options, quantize
from converter.quantize.bias_correction import correct, correctable, float_means
from converter.quantize.measure import as_inputs
from converter.rewriter import copy
from schema import evaluate, inference
from schema.fixedpoint import dequantize
from tests.support.unequal_nets import images, inverted_residual


def quantized(graph, x, options=None):
    inference.annotate(graph)
    result = copy(graph)
    quantize(result, options or Options("int8"), x)
    return result


def corrected(real, result, x, layers=None):
    nodes = [node for node in correctable(real, result) if layers is None or node.name in layers]
    means = float_means(real, nodes, x)
    forms = correctable(real, result)
    changed = copy(result)
    twins = dict(zip(result.nodes, changed.nodes, strict=True))
    correct(changed, x, {twins[forms[node]]: mean for node, mean in means.items()})
    return changed


def mean_errors(real, result, x):
    """For each linear layer the largest error of a channel's mean, relative to the deviation of all its numbers."""
    pairs = [(a, b) for a, b in correctable(real, result).items()]
    expected = evaluate.run(real, [x], keep=[a.outputs[0] for a, _ in pairs])[len(real.outputs) :]
    found = evaluate.run(result, as_inputs(result, [x]), keep=[b.outputs[0] for _, b in pairs])[len(real.outputs) :]
    errors = {}
    for (node, form), a, b in zip(pairs, expected, found, strict=True):
        means = [array.reshape(-1, a.shape[-1]).mean(0) for array in (a, dequantize(b, form.outputs[0].quantization))]
        errors[node.name] = np.abs(means[1] - means[0]).max() / a.std()
    return errors


OPTIONS = [Options("int8"), Options("int8", int16="depthwise"), Options("int8", io_dtype="int8")]


@pytest.mark.parametrize("options", OPTIONS)
def test_inherited_shifts_of_the_mean_are_taken_back(options, rng):
    """Without activations, the means before and after them are the same."""
    real, x = inverted_residual("NONE", spread=10.0), images(rng, 24)
    result = quantized(real, x, options)
    changed = corrected(real, result, [[x[:10]], [x[10:]]])
    before, after = (mean_errors(real, graph, x) for graph in (result, changed))
    assert before["scores"] > 0.02
    for name in ("project", "expand", "scores"):
        assert after[name] < max(before[name] / 3, 0.0015), name


def test_only_the_named_layers_change(rng):
    real, x = inverted_residual(), images(rng, 16)
    result = quantized(real, x)
    changed = corrected(real, result, [[x]], {"project", "scores"})
    for before, after in zip(result.nodes, changed.nodes, strict=True):
        if before.op not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            continue
        same = np.array_equal(bias_of(before).value, bias_of(after).value)
        assert same != (before.name in ("project", "scores"))
        assert bias_of(after).quantization == bias_of(before).quantization
        assert after.inputs[1] is before.inputs[1]


def test_batches_do_not_matter(rng):
    real, x = inverted_residual(), images(rng, 16)
    result = quantized(real, x)
    whole, parts = corrected(real, result, [[x]]), corrected(real, result, [[x[:3]], [x[3:10]], [x[10:]]])
    for a, b in zip(whole.nodes, parts.nodes, strict=True):
        for one, two in zip(a.inputs, b.inputs, strict=True):
            if one.is_constant and one is not two:
                assert np.abs(one.value.astype(np.int64) - two.value).max() <= 1


def test_a_layer_without_a_bias_gets_one(rng):
    real, x = inverted_residual("NONE", spread=100.0), images(rng, 16)
    project = next(node for node in real.nodes if node.name == "project")
    project.inputs = project.inputs[:2]
    changed = corrected(real, quantized(real, x), [[x]])
    node = next(node for node in changed.nodes if node.name == "project")
    bias = node.inputs[2]
    assert bias.value.any() and bias.dtype == np.int32
    np.testing.assert_array_equal(
        bias.quantization.scale, node.inputs[0].quantization.scale * node.inputs[1].quantization.scale
    )
    evaluate.run(changed, [x])
