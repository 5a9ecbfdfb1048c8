"""SOFTMAX behind a mask: as Keras computes it, and in integers as the softmax of what is let in alone."""

import importlib

import numpy as np
import pytest

import schema
from schema import (
    FormatError,
    Graph,
    Model,
    Node,
    Quantization,
    ShapeError,
    Tensor,
    TensorType,
    UnsupportedError,
    container,
    evaluate,
    metadata,
    ops,
)
from schema.ops.attributes import SoftmaxAttributes
from tests.support import drawing_int8, drawing_int16
from tests.support.litert import Operand
from tests.support.parity import assert_close, run_reference

MASKS = [(2, 3, 5, 7), (1, 1, 5, 7), (2, 1, 1, 7), (2, 3, 5, 1), (5, 7), (7,), (1,), (), (2, 1, 5, 7), (1, 3, 1, 7)]
FORMS = {
    "int8": (lambda rng, *shape: drawing_int8.int8(rng, *shape), Quantization(0.07, 3), Quantization(1 / 256, -128)),
    "int16": (lambda rng, *shape: drawing_int16.int16(rng, *shape), Quantization(2e-4), Quantization(1 / 32768)),
}


@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
@pytest.mark.parametrize("shape", MASKS[:5])
def test_floats_are_those_of_keras(kind, shape, rng):
    x, mask = 3 * rng.normal(size=(2, 3, 5, 7)).astype(np.float32), rng.random(shape) < 0.6
    expected = np.asarray(importlib.import_module(kind).layers.Softmax()(x, np.broadcast_to(mask, x.shape)))
    (result,) = run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x), Operand(mask)])
    let_in = np.broadcast_to(mask, x.shape).any(axis=-1)
    assert_close(result[let_in], expected[let_in])
    assert not result[np.broadcast_to(mask, x.shape) < let_in[..., None]].any()


def test_nothing_let_in_is_all_alike(rng):
    """As attention in Keras 3 and tf_keras: -1e9 takes the place of the scores, or swallows them."""
    keras, tf_keras = (importlib.import_module(kind) for kind in ("keras", "tf_keras"))
    x, mask = rng.normal(size=(1, 2, 1, 4)).astype(np.float32), np.zeros((1, 2, 1, 4), bool)
    (result,) = run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x), Operand(mask)])
    assert_close(result, np.full(x.shape, 0.25, np.float32))
    assert_close(result, np.asarray(tf_keras.layers.Softmax()(x, mask)))
    query, key, value = (rng.normal(size=(1, n, 2, 3)).astype(np.float32) for n in (1, 4, 4))
    context = keras.ops.nn.dot_product_attention(query, key, value, mask=mask)
    assert_close(np.asarray(context)[0, 0], value[0].mean(axis=0))


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_integers_are_those_of_what_is_let_in(form, shape, beta, rng):
    draw, given, result = FORMS[form]
    x, mask = draw(rng, 2, 3, 5, 7), rng.random(shape) < 0.6
    attributes = SoftmaxAttributes(beta)
    (y,) = run_reference("SOFTMAX", attributes, [Operand(x, given), Operand(mask)], [result])
    every = np.broadcast_to(mask, x.shape)
    for place in np.ndindex(2, 3, 5):
        let_in = every[place]
        row = x[place][let_in] if let_in.any() else np.zeros_like(x[place])
        (expected,) = run_reference("SOFTMAX", attributes, [Operand(row, given)], [result])
        np.testing.assert_array_equal(y[place][let_in] if let_in.any() else y[place], expected)
        assert (y[place][let_in < let_in.any()] == result.zero_point[0]).all()


@pytest.mark.parametrize("form", ["float32", *FORMS])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_any_axis(form, axis, rng):
    draw, given, output = FORMS.get(form, (lambda r, *s: r.normal(size=s).astype(np.float32), None, None))
    x, mask = draw(rng, 4, 5, 6), rng.random((5, 6)) < 0.5
    (y,) = run_reference("SOFTMAX", SoftmaxAttributes(1.0, axis), [Operand(x, given), Operand(mask)], [output])
    moved = [np.moveaxis(array, axis, -1) for array in np.broadcast_arrays(x, mask)]
    operands = [Operand(np.ascontiguousarray(moved[0]), given), Operand(np.ascontiguousarray(moved[1]))]
    (expected,) = run_reference("SOFTMAX", SoftmaxAttributes(), operands, [output])
    np.testing.assert_array_equal(np.moveaxis(y, axis, -1), expected)


def test_a_mask_can_be_wider(rng):
    x, mask = rng.normal(size=(1, 1, 4)).astype(np.float32), rng.random((3, 2, 1)) < 2
    (y,) = run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x), Operand(mask)])
    assert y.shape == (3, 2, 4)
    assert_close(y[1, 1], run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x[0, 0])])[0])


def test_what_is_not_let_in_spoils_nothing():
    x = np.array([[np.nan, 1, 1, np.inf], [3e38, -np.inf, 0, 0]], np.float32)
    mask = np.array([[False, True, True, False], [False, True, True, True]])
    (y,) = run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x), Operand(mask)])
    assert y.tolist() == [[0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]


def test_refuses():
    def infer(*kinds, **attributes):
        types = [TensorType(*kind) for kind in kinds]
        return ops.get("SOFTMAX").infer(SoftmaxAttributes(**attributes), types, [None] * len(types))[0].shape

    boolean = np.dtype(bool)
    assert infer(((None, 2, 3), np.float32), ((None, 1, 3), boolean)) == (None, 2, 3)
    assert infer(((2, 3), np.float32), (None, boolean)) is None
    with pytest.raises(UnsupportedError, match="the mask"):
        infer(((2, 3), np.float32), ((2, 3), np.float32))
    with pytest.raises(ShapeError, match="more dimensions"):
        infer(((2, 3), np.float32), ((1, 2, 3), boolean))
    with pytest.raises(ShapeError, match="broadcast"):
        infer(((2, 3), np.float32), ((4,), boolean))
    with pytest.raises(UnsupportedError, match="LOG_SOFTMAX"):
        ops.get("LOG_SOFTMAX").infer(SoftmaxAttributes(), [TensorType((2,), np.int32)], [None])


def file(mask: "Tensor | None", *more: Tensor, op: str = "SOFTMAX") -> bytes:
    x, y = Tensor("x", np.float32, (None, 3)), Tensor("y", np.float32)
    inputs = [x] + [t for t in (mask, *more) if t is not None and not t.is_constant]
    node = Node(op, [x, mask, *more], [y], SoftmaxAttributes(), "softmax")
    return schema.write(Model([Graph([node], inputs, [t.name for t in inputs], [y], ["y"])]))


@pytest.mark.parametrize("constant", [True, False])
def test_round_trip(constant, rng):
    array = np.array([True, False, True])
    mask = Tensor.from_array("m", array) if constant else Tensor("m", np.bool_, (3,))
    graph = schema.read(file(mask)).graph
    x = rng.normal(size=(2, 3)).astype(np.float32)
    (y,) = evaluate.run(graph, [x] if constant else [x, array])
    assert_close(y, run_reference("SOFTMAX", SoftmaxAttributes(), [Operand(x), Operand(array)])[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: file(Tensor.from_array("m", np.ones(3, np.float32))), "the mask"),
        (lambda: file(Tensor.from_array("m", np.ones(4, bool))), "broadcast"),
        (lambda: file(Tensor.from_array("m", np.ones((1, 1, 3), bool))), "more dimensions"),
        (lambda: file(*[Tensor.from_array("m", np.ones(3, bool)) for _ in range(2)]), "3 inputs"),
        (lambda: file(Tensor.from_array("m", np.ones(3, bool)), op="LOG_SOFTMAX"), "2 inputs"),
    ],
)
def test_files_that_do_not_fit(content, message):
    with pytest.raises(FormatError, match=message):
        schema.read(content())


def test_a_mask_needs_a_new_reader_and_none_an_old_one():
    def needed(content):
        return metadata.read(container.unpack(content))["minimum_reader"]

    assert needed(file(Tensor.from_array("m", np.ones(3, bool)))) == 5
    assert needed(file(None)) == 1
