"""TensorFlow ops that Keras layers seldom or never emit, read from functions and compared with TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from converter.frontends.tensorflow import graph_reader
from converter.frontends.tensorflow.names import LayerNames
from converter.frontends.tensorflow.program import Port, Program
from schema import evaluate
from schema.errors import UnsupportedError

F, INT = np.float32, np.int32


def read(function, *specs):
    concrete = tf.function(function).get_concrete_function(*specs)
    definition = concrete.graph.as_graph_def()
    captured = {inside.name.split(":")[0]: outside.numpy() for outside, inside in concrete.graph.captures}
    inputs = [
        Port(t.op.name, t.name, np.dtype(t.dtype.as_numpy_dtype), t.shape.as_list())
        for t in concrete.inputs[: len(specs)]
    ]
    outputs = [Port(f"y{i}", t.name) for i, t in enumerate(concrete.outputs)]
    functions = {f.signature.name: f for f in definition.library.function}
    return graph_reader.read(Program(definition.node, functions, inputs, outputs, LayerNames(), captured=captured))


def check(function, *arrays, dynamic=True, tolerance=1e-5):
    """With every axis unknown and with every axis known."""
    expected = [np.asarray(y) for y in tf.nest.flatten(function(*map(tf.constant, arrays)))]
    shapes = [[a.shape for a in arrays]] + ([[[None] * a.ndim for a in arrays]] if dynamic else [])
    for known in shapes:
        graph = read(function, *(tf.TensorSpec(s, a.dtype) for s, a in zip(known, arrays, strict=True)))
        for ours, theirs in zip(evaluate.run(graph, arrays), expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def draw(*shape, dtype=F):
    rng = np.random.default_rng(3)
    return rng.normal(0, 2, shape).astype(dtype) if dtype == F else rng.integers(0, 4, shape).astype(dtype)


UNARY = """abs negative sign exp expm1 square sin cos floor round erf sigmoid tanh softsign softplus relu relu6 elu selu
    zeros_like ones_like is_nan is_finite tan""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    function = getattr(tf.math, name, None) or getattr(tf.nn, name, None) or getattr(tf, name)
    check(function, draw(2, 3))


@pytest.mark.parametrize("name", "log log1p sqrt rsqrt reciprocal erfc".split())
def test_unary_of_positive_numbers(name):
    check(getattr(tf.math, name, None) or tf.math.erfc, np.abs(draw(2, 3)) + 0.5)


BINARY = """add subtract multiply divide maximum minimum squared_difference floordiv floormod equal not_equal greater
    greater_equal less less_equal divide_no_nan multiply_no_nan""".split()


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts(name):
    b = draw(3)
    b[0] = 0 if "no_nan" in name else b[0]
    check(getattr(tf.math, name), draw(2, 3), b)


def test_logic():
    a, b = draw(2, 4, dtype=INT) > 1, draw(4, dtype=INT) > 1
    check(lambda a, b: [tf.logical_and(a, b), tf.logical_or(a, b), tf.logical_not(a), tf.math.logical_xor(a, b)], a, b)
    check(lambda a: [tf.reduce_any(a, 1), tf.reduce_all(a, 0, keepdims=True)], a)


@pytest.mark.parametrize("name", "mean sum max min prod euclidean_norm logsumexp std variance".split())
@pytest.mark.parametrize(("axis", "keep"), [(1, False), ([0, -1], True), (None, False)])
def test_reductions(name, axis, keep):
    check(lambda x: getattr(tf.math, f"reduce_{name}")(x, axis, keepdims=keep), draw(2, 3, 4))


def test_where_the_extremes_are():
    check(lambda x: [tf.argmax(x, 1), tf.argmin(x, -1, output_type=tf.int32)], draw(3, 5))


def test_running_sums():
    check(lambda x: [tf.cumsum(x, 1), tf.cumsum(x, -1, exclusive=True, reverse=True)], draw(2, 4))


@pytest.mark.parametrize(
    "equation",
    """abc,cd->abd abc,cde->abde abcd,cde->abe bij,bjk->bik bhqd,bhkd->bhqk bqhd,bkhd->bhqk bhqk,bkhd->bqhd ij,kj->ki
    i,j->ij bi,bi->b abc,abc->c bij,kj->bki ...ij,jk->...ik ab,ab->ab abc,bd->acd ijk,k->ij""".split(),
)
def test_einsum_of_two(equation):
    terms = equation.split("->")[0].split(",")
    sizes = dict(zip("abcdehijkq", range(2, 12), strict=True))
    shapes = [[sizes[label] for label in term.replace("...", "ab")] for term in terms]
    a, b = (draw(*shape) for shape in shapes)
    check(lambda a, b: tf.einsum(equation, a, b), a, b, tolerance=1e-4)
    check(lambda a: tf.einsum(equation, a, tf.constant(b)), a, tolerance=1e-4)
    check(lambda b: tf.einsum(equation, tf.constant(a), b), b, tolerance=1e-4)


def test_einsum_of_one():
    check(
        lambda x: [tf.einsum("abc->ca", x), tf.einsum("abc->cba", x), tf.einsum("abc->", x)],
        draw(2, 3, 4),
        tolerance=1e-4,
    )


def test_einsum_with_a_diagonal_is_refused():
    with pytest.raises(UnsupportedError, match="ii->i"):
        read(lambda x: tf.einsum("ii->i", x), tf.TensorSpec([3, 3]))


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_matmul(ta, tb):
    a, b = draw(*((4, 3) if ta else (3, 4))), draw(*((5, 4) if tb else (4, 5)))
    check(lambda a, b: tf.matmul(a, b, ta, tb), a, b)
    check(lambda a: tf.matmul(a, tf.constant(b), ta, tb), a)
    check(lambda a: tf.matmul(tf.stack([a, a + 1]), tf.constant(b), ta, tb), a)


def test_joining_and_splitting():
    check(lambda x: tf.split(x, 3, -1), draw(2, 6), dynamic=False)
    check(lambda x: tf.split(x, [1, 3, 2], 1), draw(2, 6), dynamic=False)
    check(lambda x: tf.unstack(x, 3, 1), draw(2, 3))
    check(lambda x, y: [tf.stack([x, y], 1), tf.concat([x, y], -1)], draw(2, 3), draw(2, 3))


def test_looking_up():
    x, i = draw(2, 4, 3), draw(2, 2, dtype=INT)
    check(lambda x, i: [tf.gather(x, i, axis=1), tf.gather(x, i, axis=1, batch_dims=1)], x, i)
    check(lambda x, i: tf.gather_nd(x, i // 2), x, i)
    check(lambda i: [tf.one_hot(i, 4), tf.one_hot(i, 3, 5, 1, axis=1)], i)


def test_shapes():
    x = draw(2, 1, 3)
    check(lambda x: [tf.shape(x), tf.shape(x, tf.int64), tf.size(x), tf.rank(x)], x)
    check(lambda x: [tf.expand_dims(x, -1), tf.squeeze(x, [1]), tf.reshape(x, [tf.shape(x)[0], -1])], x)
    check(lambda x: [tf.broadcast_to(x, [2, 5, 3]), tf.tile(x, [1, 2, 1]), tf.reverse(x, [0, 2])], x)
    check(lambda x: tf.broadcast_dynamic_shape(tf.shape(x), tf.constant([4, 1])), x)
    check(lambda x: tf.squeeze(x), x, dynamic=False)
    check(lambda x: tf.fill(tf.shape(x), 2.0) + tf.cast(tf.range(tf.shape(x)[2]), tf.float32), x)


def test_slices():
    x = draw(4, 5, 6)
    check(lambda x: [x[1:3, ::2, -2:], x[:, 1], x[..., tf.newaxis, 2], x[::-1, 3:1:-1]], x)
    check(lambda x: tf.slice(x, [1, 0, 2], [2, -1, 3]), x)


def test_padding():
    x = draw(2, 3)
    check(lambda x: [tf.pad(x, [[1, 0], [0, 2]]), tf.pad(x, [[0, 1], [1, 1]], constant_values=3.0)], x)
    check(lambda x: [tf.pad(x, [[1, 1], [2, 0]], mode) for mode in ("REFLECT", "SYMMETRIC")], x)


def test_blocks():
    x = draw(2, 4, 4, 8)
    check(lambda x: [tf.nn.depth_to_space(x, 2), tf.nn.space_to_depth(x, 2)], x, dynamic=False)
    check(lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [2, 2]]), x)


def test_choosing():
    x, y = draw(3, 4), draw(3, 4) + 1
    check(lambda x, y: [tf.where(x > 0, x, y), tf.where(x > 0, 1.0, y)], x, y)
    check(lambda x, y: tf.raw_ops.Select(condition=x[:, 0] > 0, x=x, y=y), x, y)
    check(lambda x: tf.clip_by_value(x, -1.0, 0.5), x)
    check(lambda x: tf.linalg.band_part(x, 1, 0), x)
    check(lambda x: tf.linalg.band_part(x, -1, 2), x)


def test_casts():
    x = draw(2, 3)
    check(lambda x: [tf.cast(x, tf.int32), tf.cast(x, tf.bool), tf.cast(tf.cast(x, tf.int64), tf.float32)], x)
    check(lambda x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32), x)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_channels_first(data_format):
    """Convolutions of channels-first graphs run on GPUs only: here they are compared with the transposed ones."""
    x, w, b = draw(2, 6, 5, 3), draw(3, 3, 3, 4), draw(4)

    def net(x, data_format):
        first = data_format == "NCHW"
        x = tf.transpose(x, [0, 3, 1, 2]) if first else x
        axes = [1, 1, 2, 1] if first else [1, 2, 1, 1]
        y = tf.raw_ops.Conv2D(input=x, filter=w, strides=axes, padding="SAME", data_format=data_format)
        y = tf.raw_ops.BiasAdd(value=y, bias=b, data_format=data_format)
        y = tf.raw_ops.MaxPool(
            input=y,
            ksize=[1, 1, 2, 2] if first else [1, 2, 2, 1],
            strides=[1] * 4,
            padding="VALID",
            data_format=data_format,
        )
        y = tf.raw_ops.FusedBatchNormV3(
            x=y, scale=b, offset=b, mean=b, variance=b * b, is_training=False, data_format=data_format
        )[0]
        return tf.transpose(y, [0, 2, 3, 1]) if first else y

    graph = read(lambda x: net(x, data_format), tf.TensorSpec([None, 6, 5, 3]))
    np.testing.assert_allclose(evaluate.run(graph, [x])[0], net(x, "NHWC"), rtol=1e-4, atol=1e-4)


def test_explicit_padding():
    x, w = draw(2, 7, 6, 3), draw(3, 3, 3, 4)
    pads = [[0, 0], [2, 1], [0, 2], [0, 0]]
    check(lambda x: tf.nn.conv2d(x, w, 2, pads), x, tolerance=1e-4)
    check(
        lambda x: tf.nn.conv2d_transpose(x, draw(3, 3, 4, 3), [2, 12, 11, 4], 2, pads), x, dynamic=False, tolerance=1e-4
    )


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("narrow", [False, True])
def test_fake_quantization(bits, narrow):
    """Activations become QUANTIZE and DEQUANTIZE, constants are rounded."""
    x = np.linspace(-3, 5, 500, dtype=F).reshape(2, 250)

    def fake(x):
        return tf.quantization.fake_quant_with_min_max_vars(x, -1.3, 3.9, bits, narrow)

    check(fake, x)
    ops = [node.op for node in read(fake, tf.TensorSpec([2, 250])).nodes]
    assert ops[-2:] == ["QUANTIZE", "DEQUANTIZE"]
    check(lambda y: y + fake(tf.constant(x)), np.zeros((2, 250), F))
    low, high = tf.constant([-1.0, -2.0, 0.0]), tf.constant([1.0, 0.5, 3.0])
    check(lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, low, high, bits, narrow), draw(4, 3))
