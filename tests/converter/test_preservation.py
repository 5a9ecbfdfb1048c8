"""Zeros and clusters of the source are in the file, or the conversion fails and says where."""

import dataclasses

import numpy as np
import pytest

import schema
from converter import convert, preservation
from converter.passes.manager import Explanation
from converter.preservation import Kernel, check, describe, expected, kernels
from schema import Constant, Graph, LostStructureError, Node, Quantization, Tensor
from schema.ops.attributes import FullyConnectedAttributes
from tests.support.float_graphs import Builder, clustered

PRUNED, CLUSTERED = Kernel("pruned", 1000, 800, 200), Kernel("clustered", 1000, 600, 16)


def test_what_is_kept_is_told():
    encoded = [dataclasses.replace(CLUSTERED, values=15)]
    found = check([PRUNED, CLUSTERED, Kernel("dense", 50, 0, 50)], [PRUNED, *encoded], [PRUNED, *encoded])
    assert [(row.source, row.file) for row in found] == [(PRUNED, PRUNED), (CLUSTERED, encoded[0])]
    assert [line.split() for line in describe(found).splitlines()[1:]] == [
        ["pruned", "1000", "800", "800"],
        ["clustered", "1000", "600", "600", "16", "15"],
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dataclasses.replace(PRUNED, zeros=799), "layer 'pruned': of 1000 weights, the source has 800 zeros.*799"),
        (dataclasses.replace(CLUSTERED, zeros=0), "layer 'clustered'.*600 zeros"),
        (dataclasses.replace(CLUSTERED, values=83), "layer 'clustered'.*16 distinct values, the file 83"),
    ],
    ids=str,
)
def test_what_is_lost_is_an_error_that_names_the_layer(changed, message):
    written = [{PRUNED.layer: PRUNED, CLUSTERED.layer: CLUSTERED} | {changed.layer: changed}][0]
    with pytest.raises(LostStructureError, match=message):
        check([PRUNED, CLUSTERED], list(written.values()), list(written.values()))


def test_factors_that_the_encoder_multiplied_in():
    (row,) = check([CLUSTERED], [CLUSTERED], [dataclasses.replace(CLUSTERED, values=120)])
    assert "multiplied in" in row.remark


def test_layers_that_became_others_are_compared_from_there_on():
    explanation = Explanation([("merge_sum", ["a and b: the sum of two layers on one input became one"])])
    source = [Kernel("a", 100, 60, 40), Kernel("b", 100, 60, 40), Kernel("c", 100, 90, 10)]
    merged = [Kernel("a", 100, 30, 70), Kernel("c", 100, 90, 10), Kernel("folded", 64, 32, 4)]
    wanted = expected(source, merged, explanation)
    assert sorted(wanted, key=lambda kernel: kernel.layer) == merged
    assert len(check(wanted, merged, merged)) == 3
    with pytest.raises(LostStructureError, match="'a'"):
        check(wanted, merged, [Kernel("a", 100, 29, 71), *merged[1:]])


def test_kernels_are_what_has_two_axes_before_factors_per_channel(rng):
    build = Builder()
    weights = clustered(rng.normal(size=(8, 40)), 6, np.arange(8.0))  # one channel's factor is zero
    y = build.node("FULLY_CONNECTED", build.input("x", None, 40), weights, build.constant(np.ones(8)), name="dense")
    (kernel,) = kernels(build.end(y))
    assert (kernel.layer, kernel.size, kernel.zeros) == ("dense", 320, 40)
    assert kernel.values <= 6


def test_zeros_of_integers_are_at_their_zero_point(rng):
    """A uint8 kernel of an old .tflite file."""
    integers = rng.integers(0, 256, (8, 40)).astype(np.uint8)
    weights = Tensor("w", np.uint8, (8, 40), Quantization(0.1, 128), Constant(integers))
    x, y = Tensor("x", np.uint8, (1, 40), Quantization(0.1, 0)), Tensor("y", np.uint8, (1, 8), Quantization(1, 0))
    node = Node("FULLY_CONNECTED", [x, weights], [y], FullyConnectedAttributes(), "dense")
    (kernel,) = kernels(Graph([node], [x], ["x"], [y], ["y"]))
    assert kernel.zeros == np.sum(integers == 128)


def test_what_is_no_kernel_may_change(rng):
    build = Builder()
    x = build.input("x", None, 40)
    y = build.node("ADD", x, build.constant(np.zeros((4, 40))), name="add")
    assert kernels(build.end(y)) == []


@pytest.fixture(scope="module")
def compressed():
    """A tf_keras net of pruned and clustered kernels with BatchNorms, as training leaves them, and data."""
    keras = pytest.importorskip("tf_keras")
    rng = np.random.default_rng(5)
    inputs = keras.layers.Input((12, 12, 3))
    x = inputs
    for index, filters in enumerate((16, 24)):
        x = keras.layers.Conv2D(filters, 3, use_bias=False, name=f"conv_{index}")(x)
        x = keras.layers.ReLU()(keras.layers.BatchNormalization(name=f"norm_{index}")(x))
    x = keras.layers.DepthwiseConv2D(3, name="depthwise")(x)
    model = keras.Model(inputs, keras.layers.Dense(10, name="head")(keras.layers.GlobalAveragePooling2D()(x)))
    for layer in model.layers:
        values = layer.get_weights()
        if "norm" in layer.name:
            size = values[0].shape
            signs = rng.choice([-1.0, 1.0], size)
            layer.set_weights(
                [signs * rng.uniform(0.5, 2, size), *rng.normal(size=(2, *size)), rng.uniform(1, 3, size)]
            )
        elif layer.name.startswith(("conv", "head")):
            kernel = clustered(values[0], 9).value.copy()
            zeros = rng.random(kernel.shape) < 0.7
            into, out = np.arange(kernel.shape[-2]), np.arange(kernel.shape[-1])
            zeros[..., into, into % len(out)] = False  # no channel is dead: those would be removed
            zeros[..., out % len(into), out] = False
            kernel[zeros] = 0
            layer.set_weights([kernel, *values[1:]])
    return model, rng.normal(size=(64, 12, 12, 3)).astype(np.float32)


@pytest.mark.parametrize("quantize", ["none", "float16", "int8-weights", "int8", "int16x8"])
def test_the_written_file_has_the_zeros_and_values_of_training(compressed, quantize):
    model, x = compressed
    result = convert(model, quantize, x if quantize in ("int8", "int16x8") else None)
    layers = ("conv_0", "conv_1", "head")
    rows = {row.source.layer: row for row in result.report.preserved}
    assert list(rows) == list(layers)
    for layer in layers:
        kernel = np.asarray(model.get_layer(layer).get_weights()[0])
        assert rows[layer].source.zeros == np.sum(kernel == 0)
    (graph,) = schema.read(result.bytes).graphs
    for kernel in kernels(graph):
        if kernel.layer in layers:
            assert kernel.zeros >= rows[kernel.layer].source.zeros
            assert kernel.values <= 9 or rows[kernel.layer].remark
    if quantize in ("int8", "int16x8"):
        assert rows["conv_1"].file.values <= 2 * 9  # a channel of negative factor has the values' negatives
    else:
        assert not rows["conv_1"].remark  # BatchNorm's factors are beside the codebook
    assert "conv_1" in preservation.describe(result.report.preserved)
    assert "pruned, clustered" in str(result.report)


def test_int8_of_clusters_costs_no_more_accuracy_than_int8_of_any_weights(compressed):
    """What is lost by one scale for a kernel's values, beside scales for each channel of the same kernel's products."""
    import runtime

    model, x = compressed
    exact = np.asarray(model(x))

    def error(source):
        return np.abs(runtime.load(convert(source, "int8", x).bytes)(x) - exact).mean()

    keras = pytest.importorskip("tf_keras")
    spread = keras.models.clone_model(model)
    spread.set_weights([w * np.float32(1) for w in model.get_weights()])
    random = np.random.default_rng(1)
    for name in ("conv_0", "conv_1", "head"):  # no clusters any longer, and next to the same function
        kernel, *rest = spread.get_layer(name).get_weights()
        spread.get_layer(name).set_weights([kernel * (1 + 1e-4 * random.normal(size=kernel.shape)), *rest])
    assert error(model) <= 1.2 * error(spread)


def test_a_writer_that_loses_them_is_found_out(compressed, monkeypatch):
    model, _ = compressed
    write = schema.write

    def lossy(whole):
        for graph in whole.graphs:
            for node in graph.nodes:
                for tensor in node.inputs:
                    if node.name == "head" and tensor is not None and tensor.is_constant and tensor.value.ndim == 2:
                        tensor.set_constant(schema.Constant(tensor.value + np.float32(1e-3)))
        return write(whole)

    monkeypatch.setattr(schema, "write", lossy)
    with pytest.raises(LostStructureError, match=r"'head'.*zeros"):
        convert(model)
