"""Branches and loops that depend on data, of TensorFlow functions and of Keras models, against them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import converter
import runtime
import schema
from converter.frontends.tensorflow import graph_reader
from converter.frontends.tensorflow.names import LayerNames
from converter.frontends.tensorflow.program import Port, Program
from schema import Graph, Model, UnsupportedError, evaluate
from schema.graph import all_nodes, nested

F = np.float32


def read(function, *specs) -> Graph:
    concrete = tf.function(function).get_concrete_function(*specs)
    definition = concrete.graph.as_graph_def()
    variables = {id(variable.handle): variable for variable in concrete.graph.variables}
    loaders, captured = {}, {}
    for outside, inside in concrete.graph.captures:
        name = inside.name.split(":")[0]
        if id(outside) in variables:
            loaders[name] = variables[id(outside)].numpy
        else:
            captured[name] = outside.numpy()
    inputs = [
        Port(t.op.name, t.name, np.dtype(t.dtype.as_numpy_dtype), t.shape.as_list())
        for t in concrete.inputs[: len(specs)]
    ]
    outputs = [Port(f"y{i}", t.name) for i, t in enumerate(concrete.outputs)]
    functions = {f.signature.name: f for f in definition.library.function}
    return graph_reader.read(Program(definition.node, functions, inputs, outputs, LayerNames(), loaders, captured))


def check(function, *calls) -> Graph:
    """By references and on the engine, with every axis unknown and with every axis known. calls: lists of arrays."""
    graph = None
    for dynamic in (True, False):
        shapes = [[None] * a.ndim if dynamic else a.shape for a in calls[0]]
        graph = read(function, *(tf.TensorSpec(s, a.dtype) for s, a in zip(shapes, calls[0], strict=True)))
        model = runtime.load(schema.write(Model([graph])), 1)
        for arrays in calls:
            expected = [np.asarray(y) for y in tf.nest.flatten(function(*map(tf.constant, arrays)))]
            result = model(*arrays)
            found = list(result.values()) if isinstance(result, dict) else [result]
            for ours in (evaluate.run(graph, arrays), found):
                for got, wanted in zip(ours, expected, strict=True):
                    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    return graph


def draw(count: int, *shape: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(20)
    return [[rng.standard_normal(shape).astype(F)] for _ in range(count)]


def ops_of(graph: Graph) -> list[str]:
    return [node.op for inner in nested(graph) for node in inner.nodes]


def test_branches():
    calls = draw(6, 2, 3)
    assert {bool(x.sum() > 0) for (x,) in calls} == {True, False}
    graph = check(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x * 2.0), *calls)
    assert ops_of(graph).count("IF") == 1


def test_branches_of_several_outputs_and_shapes():
    def function(x):
        return tf.cond(x[0, 0] > 0, lambda: (x, tf.shape(x)), lambda: (tf.concat([x, x], 0), tf.shape(x) * 2))

    check(function, *draw(4, 2, 3))


def test_conditions_that_are_numbers():
    def function(x):
        return tf.raw_ops.If(
            cond=tf.cast(x[0, 0] > 0, tf.int32),
            input=[x],
            Tout=[tf.float32],
            then_branch=tf.function(lambda v: v + 1.0).get_concrete_function(tf.TensorSpec(None, tf.float32)),
            else_branch=tf.function(lambda v: v * 2.0).get_concrete_function(tf.TensorSpec(None, tf.float32)),
        )

    graph = read(function, tf.TensorSpec((2, 3), tf.float32))
    for (x,) in draw(4, 2, 3):
        np.testing.assert_array_equal(evaluate.run(graph, [x])[0], x + 1 if x[0, 0] > 0 else x * 2)


def test_conditions_that_are_known_leave_no_branch():
    graph = check(lambda x: tf.cond(tf.rank(x) > 1, lambda: x + 1.0, lambda: x * 2.0), *draw(1, 2, 3))
    assert ops_of(graph) == ["ADD"]


def test_loops_of_a_known_number_of_steps():
    graph = check(
        lambda x: tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 0.5 + x), [0, x])[1], *draw(2, 2)
    )
    assert ops_of(graph).count("WHILE") == 1


def test_loops_that_data_end():
    def function(x):
        return tf.while_loop(lambda v, n: tf.reduce_max(v) > 0.1, lambda v, n: (v * 0.5, n + 1), [x, 0])

    calls = draw(5, 2, 3)
    assert len({int(function(tf.constant(x))[1]) for (x,) in calls}) > 1
    check(function, *calls)


def test_loops_that_grow():
    def function(x):
        shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
        return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.concat([v, x], 0)), [0, x], shapes)[1]

    check(function, *draw(2, 2, 3))


def test_what_nobody_wants_is_not_read():
    """A variable of the loop that only counts, in an op that xnn does not have."""

    def function(x):
        body = lambda i, v, w: (i + 1, v * 0.5, tf.math.lgamma(w))  # noqa: E731
        return tf.while_loop(lambda i, v, w: i < 3, body, [0, x, x])[1]

    graph = check(function, *draw(2, 2, 3))
    (node,) = [node for node in graph.nodes if node.op == "WHILE"]
    assert len(node.inputs) == 2


def test_constants_and_variables_are_inside():
    weights = tf.Variable(draw(1, 3, 3)[0][0])

    def function(x):
        body = lambda i, v: (i + 1, tf.tanh(v @ weights) + 1.0)  # noqa: E731
        return tf.while_loop(lambda i, v: i < 3, body, [0, x])[1]

    graph = check(function, *draw(2, 2, 3))
    body = graph.nodes[-1].attributes.body if graph.nodes[-1].op == "WHILE" else None
    assert body is not None
    assert len(body.inputs) == 2
    assert any(t.is_constant and t.shape == (3, 3) for node in body.nodes for t in node.inputs if t is not None)


def test_nested():
    def inner(v):
        return tf.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * 0.5), [0, v])[1]

    def function(x):
        def body(i, v):
            return i + 1, tf.cond(v[0, 0] > 0, lambda: inner(v) + x, lambda: tf.nn.relu(v))

        y = tf.while_loop(lambda i, v: i < 4, body, [0, x])[1]
        return tf.cond(y[0, 1] > 0, lambda: tf.cond(y[0, 2] > 0, lambda: y, lambda: -y), lambda: y + 1.0)

    graph = check(function, *draw(6, 2, 3))
    assert ops_of(graph).count("IF") == 3
    assert ops_of(graph).count("WHILE") == 2


# ---- lists of tensors ----


def test_map():
    graph = check(lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), *draw(2, 3, 2))
    assert ops_of(graph).count("WHILE") == 1


def test_scan():
    check(lambda x: tf.scan(lambda total, row: total * 0.5 + row, x), *draw(2, 4, 3))


def test_lists_that_loops_read_and_write():
    """Written back to front, twice, and not everywhere; read on the way, and its length asked for."""

    def function(x):
        def body(i, items):
            items = items.write(3 - i, x[i])
            return i + 1, items.write(3 - i, items.read(3 - i) * 2.0)

        items = tf.TensorArray(tf.float32, 5, element_shape=(2,), clear_after_read=False)
        _, items = tf.while_loop(lambda i, items: i < 3, body, [0, items])
        return items.stack(), items.size()

    check(function, *draw(2, 4, 2))


def test_lists_outside_of_loops():
    def function(x):
        items = tf.TensorArray(tf.float32, 2, element_shape=(3,)).write(1, x[0]).write(0, x[1])
        return items.stack(), tf.TensorArray(tf.float32, 2).unstack(x).read(1)

    check(function, *draw(2, 2, 3))


def test_lists_that_grow_are_refused():
    def function(x):
        items = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(2,))
        body = lambda i, items: (i + 1, items.write(i, x))  # noqa: E731
        return tf.while_loop(lambda i, items: i < 3, body, [0, items])[1].stack()

    with pytest.raises(UnsupportedError, match="lists of tensors that grow are not supported; give"):
        read(function, tf.TensorSpec((2,), tf.float32))


# ---- Keras ----


@pytest.mark.parametrize("module", [keras, tf_keras])
@pytest.mark.parametrize("steps", [5, None])
def test_recurrent_layers(module, steps):
    """As Keras builds them where nothing is said, of any batch and length; several in a row, back and forth."""
    layers = module.layers
    inputs = module.Input((steps, 3))
    both = layers.Bidirectional(layers.GRU(4, return_sequences=True), name="both")
    hidden = layers.SimpleRNN(5, return_sequences=True, name="simple")(both(inputs))
    states = layers.LSTM(4, return_state=True, name="lstm")(hidden)
    model = module.Model(inputs, [layers.Dense(2, name="head")(states[0]), states[2]])
    engine = runtime.load(converter.convert(model).bytes, 1)
    for batch, length in ((1, 5), (3, 5), (2, steps or 7)):
        x = draw(1, batch, length, 3)[0][0]
        for found, expected in zip(engine(x).values(), model(x), strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-5, atol=1e-6)
        assert not engine.plan([x]).tail
    dense = [node for node in all_nodes(engine.graph) if node.op == "FULLY_CONNECTED"]
    assert {node.name for node in dense} >= {"simple", "lstm", "head"}
    assert all(node.inputs[1].is_constant for node in dense)


@pytest.mark.parametrize("module", [keras, tf_keras])
@pytest.mark.parametrize("unroll", [False, True])
def test_recurrent_layers_that_keep_their_state(module, unroll):
    layers = module.layers
    inputs = module.Input(batch_shape=(2, 4, 3))
    hidden = layers.GRU(3, stateful=True, unroll=unroll, return_sequences=True)(inputs)
    model = module.Model(inputs, layers.LSTM(4, stateful=True, unroll=unroll)(hidden))
    engine = runtime.load(converter.convert(model).bytes, 1)
    assert len(engine.state) == 3
    first = None
    for (x,) in draw(3, 2, 4, 3):
        found = engine(x)
        np.testing.assert_allclose(found, np.asarray(model(x)), rtol=1e-5, atol=1e-6)
        first = found if first is None else first
    engine.reset_state()
    np.testing.assert_array_equal(engine(draw(1, 2, 4, 3)[0][0]), first)


class Counting(keras.layers.Layer):
    """x -> x times what has been counted; `late` reads what it has just assigned."""

    def __init__(self, late: bool):
        super().__init__(name="counting")
        self.late = late

    def build(self, shape):
        self.count = self.add_weight(shape=(), initializer="ones", trainable=False, name="count")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x):
        before = self.count.value
        y = x * before
        self.count.assign(before + 2.0)
        self.calls.assign(self.calls + 1.0)  # which nothing that leaves the model needs
        return x * self.count.value if self.late else y


def test_variables_that_a_model_assigns():
    inputs = keras.Input((3,))
    engine = runtime.load(converter.convert(keras.Model(inputs, Counting(False)(inputs))).bytes, 1)
    assert len(engine.state) == 1
    assert [engine(np.ones((1, 3), F))[0, 0] for _ in range(3)] == [1, 3, 5]
    late = runtime.load(converter.convert(keras.Model(inputs, Counting(True)(inputs))).bytes, 1)
    assert late.state == {}


def layer_of(module):
    class Iterated(module.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(4, 4), initializer="glorot_uniform", name="kernel")
            super().build(shape)

        def call(self, x):
            raise NotImplementedError

    return Iterated


class Keras3Layer(layer_of(keras)):
    def call(self, x):
        ops = keras.ops
        y = ops.cond(ops.sum(x) > 0, lambda: ops.relu(ops.matmul(x, self.kernel)), lambda: x * 2.0)
        body = lambda i, v: (i + 1, ops.tanh(ops.matmul(v, self.kernel)) + x)  # noqa: E731
        return ops.while_loop(lambda i, v: i < 5, body, (0, y))[1]


class TFKerasLayer(layer_of(tf_keras)):
    def call(self, x):
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.relu(tf.matmul(x, self.kernel)), lambda: x * 2.0)
        body = lambda i, v: (i + 1, tf.tanh(tf.matmul(v, self.kernel)) + x)  # noqa: E731
        return tf.while_loop(lambda i, v: i < 5, body, (0, y))[1]


@pytest.mark.parametrize(("module", "layer"), [(keras, Keras3Layer), (tf_keras, TFKerasLayer)])
def test_layers(module, layer, tmp_path):
    inputs = module.Input((4,))
    model = module.Model(inputs, module.layers.Dense(3, name="head")(layer(name="iterated")(inputs)))
    model.export(tmp_path / "saved", **({"verbose": False} if module is keras else {}))
    for source in (model, tmp_path / "saved"):
        result = converter.convert(source)
        engine = runtime.load(result.bytes, 1)
        assert [(n.op, n.name) for n in engine.graph.nodes if n.op in ("IF", "WHILE")] == [
            ("IF", "iterated"),
            ("WHILE", "iterated"),
        ]
        assert {node.name for node in all_nodes(engine.graph)} == {"iterated", "head"}
        for batch in (1, 3):
            for (x,) in draw(4, batch, 4):
                np.testing.assert_allclose(engine(x), np.asarray(model(x)), rtol=1e-5, atol=1e-6)
