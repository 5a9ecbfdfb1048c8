"""Weights in 1 to 8 bits, by layer, and what is told of those that are not."""

import numpy as np
import pytest

import runtime
import schema
from converter.__main__ import main
from converter.quantize import Options, quantize
from converter.quantize.grid import limit_of, to_grid
from converter.quantize.weight_bits import WeightBits, weight_bits
from schema import InputError, evaluate
from tests.support.float_graphs import Builder, clustered


def network():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 16)
    y = builder.depthwise(builder.conv(x, 32, name="conv"), 1, 3, name="depthwise", activation="RELU")
    y = builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="pool")
    return builder.end(builder.dense(builder.dense(y, 60, name="dense"), 4, name="few"))


def kernels(graph):
    return {node.name: node.inputs[1].constant for node in graph.nodes if node.name != "pool"}


def size(graph):
    return len(schema.write(schema.Model([graph])))


@pytest.mark.parametrize("bits", range(1, 9))
def test_all_kernels_small_ones_too_are_so_many_integers_and_run_so(bits, rng):
    graph, data = network(), rng.normal(0, 1, (16, 8, 8, 16)).astype(np.float32)
    real = {name: constant.values for name, constant in kernels(graph).items()}
    report = quantize(graph, Options(weights=f"{bits}bit"))
    written = schema.read(schema.write(schema.Model([graph]))).graphs[0]
    for name, constant in kernels(graph).items():
        values = np.asarray(constant.values)
        assert values.dtype == np.int8
        assert np.unique(values).size <= (2 if bits == 1 else 2**bits - 1)
        assert np.abs(values).max() == limit_of(bits)
        np.testing.assert_array_equal(
            kernels(written)[name].dense(np.dtype(np.float32)), constant.dense(np.dtype(np.float32))
        )
        assert np.corrcoef(constant.dense(np.dtype(np.float32)).ravel(), real[name].ravel())[0, 1] > 0.75
    found = runtime.load(schema.write(schema.Model([graph])))(data)
    np.testing.assert_allclose(found, evaluate.run(graph, [data])[0], rtol=1e-4, atol=1e-5)
    assert f"4 kernels stored in {bits} bit" in str(report)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_step_is_much_better(rng, bits, axis):
    real = rng.standard_t(4, (6, 200) if axis == 0 else (200, 6)).astype(np.float32)
    channels = to_grid(real, axis, bits)
    for index in range(6):
        row, base = np.take(real, index, axis).astype(np.float64), np.take(channels.base, index, axis)
        error = np.sum((row - base * channels.scale[index]) ** 2)
        limit = limit_of(bits)
        steps = np.abs(row).max() / limit * np.linspace(0.02, 1, 3000)
        rounded = np.clip(np.rint(row / steps[:, None]), -limit, limit)
        # In 8 bits the error is jagged: each step that moves takes hundreds of weights across a border.
        assert error <= (1.1 if bits == 8 else 1.005) * np.square(row - rounded * steps[:, None]).sum(axis=1).min()


def test_one_bit_is_the_sign_times_the_mean_magnitude_and_pruned_weights_stay_zero(rng):
    real = rng.normal(size=(5, 40)).astype(np.float32)
    real[:, ::4] = 0
    real[3] = 0
    channels = to_grid(real, 0, 1)
    np.testing.assert_array_equal(channels.base, np.sign(real))
    for row, scale in zip(real, channels.scale, strict=True):
        assert scale == pytest.approx(np.abs(row[row != 0]).mean() if row.any() else 1)


def test_few_bits_beat_the_step_of_the_largest_weight(rng):
    real = rng.normal(size=(8, 500)).astype(np.float32)
    channels = to_grid(real, 0, 3)
    step = np.abs(real).max(axis=1, keepdims=True) / 3
    assert (
        np.square(real - channels.base * channels.scale[:, None]).sum()
        < 0.6 * np.square(real - step * np.rint(real / step)).sum()
    )


def test_weights_rounded_to_suit_calibration_data_lose_less(rng):
    errors = []
    mixing = rng.normal(0, 1, (8, 64))
    data, unseen = ((rng.normal(0, 1, (400, 8)) @ mixing + 1).astype(np.float32) for _ in range(2))
    for calibration in (None, data):
        builder = Builder()
        graph = builder.end(builder.dense(builder.input("x", None, 64), 32, name="dense"))
        (expected,) = evaluate.run(graph, [unseen])
        quantize(graph, Options(weights=3), calibration)
        errors.append(np.square(evaluate.run(graph, [unseen])[0] - expected).mean())
    assert errors[1] < 0.3 * errors[0]


def test_bits_by_layer():
    graph = network()
    report = quantize(graph, Options(weights="few=8bit, d*=3bit, 2bit", keep_float="depthwise"))
    stored = {name: np.asarray(constant.values) for name, constant in kernels(graph).items()}
    assert {name: int(np.abs(values).max()) for name, values in stored.items() if values.dtype == np.int8} == {
        "conv": 1,
        "dense": 3,
        "few": 127,
    }
    reasons = {row.layer: row.reason for row in report.rows}
    assert "keep_float names it" in reasons["depthwise"]
    assert "32 numbers that are no kernel" in reasons["conv"]
    only = network()
    report = quantize(only, Options(weights={"dense": 4}))
    assert [row.layer for row in report.rows if "no bits are given" in row.reason] == ["conv", "depthwise", "few"]


def test_what_is_clustered_or_tiny_stays_and_is_told(rng):
    builder = Builder()
    x = builder.input("x", None, 64)
    y = builder.node("FULLY_CONNECTED", x, clustered(rng.normal(0, 1, (64, 64)), 16), None, name="clustered")
    y = builder.node("FULLY_CONNECTED", y, builder.constant(rng.normal(size=(64, 64))), None, name="dense")
    y = builder.node("DEPTHWISE_CONV_2D", builder.node("RESHAPE", y, builder.constant([-1, 1, 1, 64], np.int32)),
                     builder.constant(rng.normal(size=(1, 1, 1, 64))), None, name="tiny")  # fmt: skip
    graph = builder.end(y)
    report = quantize(graph, Options(weights="4bit"))
    reasons = {row.layer: row.reason for row in report.rows if row.reason}
    assert "few distinct values" in reasons["clustered"]
    assert "64 weights and a step for each of 64 channels" in reasons["tiny"]
    assert "dense" not in reasons


def test_int8_computes_with_the_integers_of_few_bits(rng):
    graph, data = network(), rng.normal(0, 1, (64, 8, 8, 16)).astype(np.float32)
    report = quantize(graph, Options("int8", weights="4bit"), data)
    linear = [node for node in graph.nodes if node.op in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")]
    for node in linear:
        assert node.inputs[1].dtype == np.int8
        assert np.unique(np.abs(node.inputs[1].value)).size <= 8
    assert "4 kernels stored in 4 bits" in str(report)


def test_fewer_bits_are_fewer_bytes():
    sizes = []
    for bits in (8, 4, 2, 1):
        graph = network()
        quantize(graph, Options(weights=bits))
        sizes.append(size(graph))
    assert sizes == sorted(sizes, reverse=True)
    weights = sum(np.asarray(constant.values).size for constant in kernels(network()).values())
    assert sizes[1] - sizes[2] > 0.15 * weights


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, WeightBits()),
        (4, WeightBits((), 4)),
        ("4", WeightBits((), 4)),
        ("1bit", WeightBits((), 1)),
        ("a=8bits,3bit", WeightBits((("a", 8),), 3)),
        ({"a/*": "2bit", "b": 5}, WeightBits((("a/*", 2), ("b", 5)))),
    ],
    ids=str,
)
def test_ways_to_say_it(given, meant):
    assert weight_bits(given) == meant
    assert bool(meant) == (given is not None)


@pytest.mark.parametrize(
    "given", ["9bit", 0, "four", 4.0, True, "4bit,3bit", "a=", {3: 4}, {"a": None}, ["4bit"]], ids=str
)
def test_useless_values_are_refused(given):
    with pytest.raises(InputError, match="weights"):
        Options(weights=given)


def test_a_pattern_without_a_layer_is_refused():
    with pytest.raises(InputError, match=r"weights 'dens' matches no layer.*dense"):
        quantize(network(), Options(weights="dens=4bit"))


def test_the_command_line(tmp_path, capsys):
    keras = pytest.importorskip("tf_keras")
    model = keras.Sequential(
        [keras.layers.Input((20,)), keras.layers.Dense(30, "relu", name="a"), keras.layers.Dense(5, name="b")]
    )
    model.save(tmp_path / "model.h5")
    target = tmp_path / "out.xnn"
    command = [str(tmp_path / "model.h5"), str(target), "--weights", "4bit", "--weights", "b=8bit", "--explain"]
    assert main(command) == 0
    found = kernels(schema.read(target).graphs[0])
    assert [int(np.abs(found[name].values).max()) for name in "ab"] == [7, 127]
    assert "2 kernels stored in 4 or 8 bits" in capsys.readouterr().out
    assert main([*command[:2], "--weights", "40bit"]) == 2
