"""What stages leave in the model and in the file, one after the other."""

from dataclasses import replace

import numpy as np
import pytest

import schema
import xnn_tf
from schema.ledger import ledger
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.recipes import DEEP_COMPRESSION, XQUEEZE
from xnn_tf.compression.stages.cluster import Cluster
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.neuron_prune import NeuronPrune
from xnn_tf.compression.stages.prune import Prune
from xnn_tf.compression.stages.quantize_aware import QuantizeAware
from xnn_tf.compression.stages.rate import RateTune

FAST = {"batch_size": 64, "verbose": False}


@pytest.fixture
def keras():
    """One of the two: each callback has tests for both."""
    return pytest.importorskip("tf_keras")


def different(weight):
    return len(np.unique(weight[weight != 0]))


@pytest.mark.slow
def test_neurons_then_synapses_then_clusters(trained, problem):
    stages = (NeuronPrune(target=0.5), Prune(levels=9), Cluster(clusters=8))
    recipe = Recipe("test", stages, (Conversion("none"),), (2.0, 0.5), levels=1)
    result = xnn_tf.compress(trained, *problem, target_ratio=12, recipe=recipe, epochs=6, **FAST)

    assert result.model.count_params() < 0.6 * trained.count_params()
    assert [layer.name for layer in result.model.layers] == [layer.name for layer in trained.layers]
    kernels = [layer.kernel.numpy() for layer in result.model.layers]
    assert all(different(kernel) <= 8 for kernel in kernels)
    pruned = next(stage for stage in result.report.data["stages"] if stage["step"] == "level-1/prune")
    sparsities = pruned["sparsities"]
    for layer, kernel in zip(result.model.layers, kernels, strict=True):
        zeros = np.count_nonzero(kernel == 0) / kernel.size
        assert zeros >= sparsities[f"{layer.name}/kernel"] - 1 / kernel.size  # clustering has kept them
    assert all(layer.distinct <= 8 for layer in ledger(result.xnn).layers)
    assert result.score > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [XQUEEZE, DEEP_COMPRESSION], ids=lambda recipe: recipe.name)
def test_recipes_that_have_names(trained, problem, recipe):
    recipe = replace(recipe, levels=1)
    result = xnn_tf.compress(trained, *problem, target_ratio=9, recipe=recipe, epochs=6, **FAST)
    assert len(result.xnn) < 1.3 * result.base_bytes / 9
    most = 8 if recipe is XQUEEZE else 31  # four levels on each side of zero; 5 bits
    assert all(different(layer.kernel.numpy()) <= most for layer in result.model.layers)
    assert result.score > 0.8


@pytest.mark.slow
def test_a_pruned_model_becomes_quantize_aware(trained, problem):
    recipe = Recipe("test", (Prune(levels=255), QuantizeAware()), (Conversion("none"),), (2.0, 0.5), levels=1)
    result = xnn_tf.compress(trained, *problem, target_ratio=6, recipe=recipe, epochs=4, **FAST)
    sparsities = next(s for s in result.report.data["stages"] if s["step"] == "level-1/prune")["sparsities"]
    layers = {layer.layer: layer for layer in ledger(result.xnn).layers}
    for layer in trained.layers:
        size = int(np.prod(layer.kernel.shape))
        assert layers[layer.name].zeros >= sparsities[f"{layer.name}/kernel"] * size - 1  # pruned stays pruned
    assert result.candidates[-1].level == 0
    assert result.candidates[-1].score > 0.8
    counts = result.report.data["histograms"]  # of layers that are in wrappers now
    assert list(counts) == ["first/kernel", "second/kernel", "out/kernel"]
    assert all(each["zeros"] >= sparsities[name] * sum(each["before"]) - 1 for name, each in counts.items())


def weights_in(xnn):
    """Integers or numbers of each Dense layer's kernel in the file, by layer."""
    (graph,) = schema.read(xnn).graphs
    return {n.name: np.asarray(n.inputs[1].constant.values) for n in graph.nodes if n.op == "FULLY_CONNECTED"}


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["none", "int8", "int8-weights"])
def test_neurons_then_bytes_in_a_recipe_of_ones_own(trained, problem, quantize):
    """What RateTune leaves, few values and zeros among them, is in the file, whatever it computes with."""
    stages = (NeuronPrune(target=0.4), RateTune(levels=3))
    recipe = Recipe("mine", stages, (Conversion(quantize),), (2.0, 0.5), levels=1)
    result = xnn_tf.compress(trained, *problem, target_ratio=14, recipe=recipe, epochs=8, **FAST)

    assert result.candidates[-1].level == 0 and result.candidates[-1].score > 0.8
    assert result.model.count_params() < 0.7 * trained.count_params()
    stored = weights_in(result.xnn)
    for layer in result.model.layers:
        kernel = layer.kernel.numpy()
        assert 1 < different(kernel) <= 6
        if layer.name != "out":
            assert np.mean(kernel == 0) > 0.3
        found = stored[layer.name].T
        assert found.shape == kernel.shape
        np.testing.assert_array_equal(found == 0, kernel == 0)
        assert different(found) == different(kernel)
        # Each value stands for one of the kernel's, in their order.
        pairs = np.unique(np.stack([found.ravel(), kernel.ravel()]), axis=1)
        assert pairs.shape[1] == np.unique(kernel).size and (np.diff(pairs) > 0).all()
