"""Branches, loops and variables of `.tflite` files against LiteRT's reference kernels, call after call."""

import contextlib
import math

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import converter
import runtime
import schema
from converter.frontends import tflite
from schema import FormatError, Graph, Quantization, UnsupportedError, XnnError, evaluate, limits
from schema.graph import nested
from tests.corpus.tflite_graphs import branches, choosing, loop, nesting, options
from tests.support.tflite_files import FileBuilder
from tests.support.tflite_variables import counting, resource, variable


def compare(content: bytes, calls: list[list[np.ndarray]], rtol: float = 0.0) -> Graph:
    """LiteRT, the reference and the converted file on the engine give the same, one call after the other."""
    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    graph = tflite.read(content)
    engine = runtime.load(converter.convert(content).bytes, 1)
    state: dict[str, np.ndarray] = {}
    for arrays in calls:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            if list(detail["shape"]) != list(array.shape):
                interpreter.resize_tensor_input(detail["index"], array.shape)
                interpreter.allocate_tensors()
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        expected = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
        result = engine(*arrays)
        for found in (
            evaluate.run(graph, arrays, state=state),
            list(result.values()) if isinstance(result, dict) else [result],
        ):
            for a, b in zip(found, expected, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(np.abs(b).max(initial=0)))
    return graph


# ---- what TensorFlow's converter writes ----


def tflite_of(function, *specs) -> bytes:
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            weights = np.random.default_rng(20).standard_normal((4, 4)) / 2
            self.weights = tf.Variable(weights.astype(np.float32))
            self.count = tf.Variable(0)
            self.buffer = tf.Variable(tf.ones((1, 4)))

    model = Model()
    concrete = tf.function(lambda *inputs: function(tf, model, *inputs)).get_concrete_function(*specs)
    writer = tf.lite.TFLiteConverter.from_concrete_functions([concrete], model)
    writer.experimental_enable_resource_variables = True
    return writer.convert()


def row(*shape):
    import tensorflow as tf

    return tf.TensorSpec(shape, tf.float32)


def rows(rng, count: int, batch: int = 1) -> list[list[np.ndarray]]:
    return [[rng.standard_normal((batch, 4)).astype(np.float32)] for _ in range(count)]


def test_counters_and_buffers_around_branches_and_loops(rng):
    def function(tf, model, x):
        model.count.assign_add(1)
        model.buffer.assign(model.buffer * 0.5 + x)

        def repeated():
            body = lambda i, v: (i + 1, tf.tanh(v @ model.weights) + x)  # noqa: E731
            return tf.while_loop(lambda i, v: i < model.count, body, [0, x])[1]

        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.nn.relu(x @ model.weights), repeated)
        return y, model.count.read_value(), model.buffer.read_value()

    graph = compare(tflite_of(function, row(1, 4)), rows(rng, 6), rtol=1e-6)
    assert len(graph.state) == 2
    assert len(list(nested(graph))) == 5


def test_any_batch(rng):
    def function(tf, model, x):
        return tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.tanh(v @ model.weights)), [0, x])[1]

    compare(tflite_of(function, row(None, 4)), [rows(rng, 1, batch)[0] for batch in (1, 3, 2)], rtol=1e-6)


def test_loops_in_loops_and_branches_in_branches(rng):
    def function(tf, model, x):
        def inner(v):
            return tf.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * 0.5 + x), [0, v])[1]

        y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, inner(v)), [0, x])[1]
        negative = lambda: tf.cond(x[0, 1] < 0, lambda: y - 1.0, lambda: -y)  # noqa: E731
        return tf.cond(x[0, 0] < 0, negative, lambda: y + 1.0)

    compare(tflite_of(function, row(1, 4)), rows(rng, 8), rtol=1e-6)


# ---- files made here ----

QUANTIZED = Quantization(0.05, 3)


def int8_file() -> FileBuilder:
    """(condition, x) -> x + x or x * x in int8, in scales of their own."""
    b = FileBuilder()
    condition, x = b.tensor(np.bool_, ()), b.tensor(np.int8, (2, 5), quantization=QUANTIZED)
    y = b.tensor(np.int8, (2, 5), quantization=Quantization(0.1, -7), name="choice")
    for op in ("ADD", "MUL"):
        inner = b.subgraph()
        given = inner.tensor(np.int8, (2, 5), quantization=QUANTIZED)
        result = inner.tensor(np.int8, (2, 5), quantization=Quantization(0.1, -7))
        inner.operator(op, [given, given], [result], options(op.capitalize()))
        inner.ends([given], [result])
    b.operator("IF", [condition, x], [y], branches(1, 2))
    b.ends([condition, x], [y])
    return b


def test_int8(rng):
    x = rng.integers(-128, 128, (2, 5)).astype(np.int8)
    graph = compare(int8_file().pack(), [[np.array(truth), x] for truth in (True, False)])
    assert graph.outputs[0].quantization == Quantization(0.1, -7)


def test_legacy_uint8(rng):
    b = int8_file()
    for graph in b.model.subgraphs:
        for tensor in graph.tensors:
            if tensor.type == tfl.TensorType.INT8:
                tensor.type = tfl.TensorType.UINT8
                tensor.quantization.zeroPoint = tensor.quantization.zeroPoint + 128
    x = rng.integers(0, 256, (2, 5)).astype(np.uint8)
    compare(b.pack(), [[np.array(truth), x] for truth in (True, False)])


def test_a_variable_by_itself(rng):
    calls = [[rng.standard_normal(2).astype(np.float32)] for _ in range(4)]
    graph = compare(counting().pack(), calls)
    assert graph.state_names == ["v"]
    assert compare(counting(assigned=False).pack(), calls).state == []


def deciding() -> FileBuilder:
    """(condition, n, x) -> v + x, which v is from then on, where the condition holds; v halves n times."""
    b = counting(assigned=False)
    b.graph.operators, b.graph.tensors = b.graph.operators[:1], []
    condition, n = b.tensor(np.bool_, ()), b.tensor(np.int32, ())
    x, y, last = b.tensor(np.float32, (2,)), b.tensor(np.float32, (2,), name="choice"), b.tensor(np.int32, ())
    then, other, more, body = (b.subgraph() for _ in range(4))

    given, before, total = (then.tensor(np.float32, (2,)) for _ in range(3))
    handle = variable(then)
    then.operator("READ_VARIABLE", [handle], [before])
    then.operator("ADD", [before, given], [total], options("Add"))
    then.operator("ASSIGN_VARIABLE", [handle, total], [])
    then.ends([given], [total])
    given, result = other.tensor(np.float32, (2,)), other.tensor(np.float32, (2,))
    other.operator("NEG", [given], [result])
    other.ends([given], [result])

    count, handle, less = more.tensor(np.int32, ()), resource(more), more.tensor(np.bool_, ())
    more.operator("LESS", [count, more.constant(3, np.int32)], [less], tfl.LessOptionsT())
    more.ends([count, handle], [less])
    count, handle, following = body.tensor(np.int32, ()), resource(body), body.tensor(np.int32, ())
    before, half = body.tensor(np.float32, (2,)), body.tensor(np.float32, (2,))
    body.operator("ADD", [count, body.constant(1, np.int32)], [following], options("Add"))
    body.operator("READ_VARIABLE", [handle], [before])
    body.operator("MUL", [before, body.constant(0.5, np.float32)], [half], options("Mul"))
    body.operator("ASSIGN_VARIABLE", [handle, half], [])
    body.ends([count, handle], [following, handle])

    b.operator("IF", [condition, x], [y], branches(then.index, other.index))
    handle, again, v = variable(b), resource(b), b.tensor(np.float32, (2,), name="v")
    b.operator("WHILE", [n, handle], [last, again], loop(more.index, body.index))
    b.operator("READ_VARIABLE", [again], [v])
    b.ends([condition, n, x], [y, last, v])
    return b


def test_variables_assigned_in_branches_and_bodies(rng):
    calls = [
        [np.array(truth), np.int32(n), rng.standard_normal(2).astype(np.float32)]
        for truth, n in ((True, 3), (True, 2), (False, 3), (False, 1), (True, 0), (True, 5))
    ]
    graph = compare(deciding().pack(), calls)
    assert graph.state_names == ["v"]


def test_state_survives_the_file():
    model = runtime.load(converter.convert(counting().pack()).bytes)
    x = np.ones(2, np.float32)
    assert [model(x)["y"].tolist() for _ in range(3)] == [[1, 2], [2, 3], [3, 4]]
    model.reset_state()
    assert model(x)["y"].tolist() == [1, 2]


def test_a_variable_without_a_value():
    with pytest.raises(UnsupportedError, match="variable 'v' is read before anything is assigned"):
        tflite.read(counting(initialised=False).pack())


def test_a_variable_of_two_dtypes():
    b = counting()
    b.graph.tensors[1].type = b.graph.tensors[2].type = tfl.TensorType.INT32
    with pytest.raises(FormatError, match=r"variable 'v' holds float32 at first, int32 later"):
        tflite.read(b.pack())


def test_first_values_behind_the_use():
    b = counting()
    b.graph.operators = b.graph.operators[1:] + b.graph.operators[:1]
    with pytest.raises(UnsupportedError, match=r"CALL_ONCE\): a variable gets its first value after it is used"):
        tflite.read(b.pack())


def test_a_variable_that_leaves_the_model():
    b = counting()
    b.graph.outputs = np.array([3], np.int32)
    with pytest.raises(UnsupportedError, match="a variable cannot leave a model"):
        tflite.read(b.pack())


def test_one_subgraph_for_two_branches():
    graph = compare(choosing(1, 1).pack(), [[np.array(True), np.ones(3, np.float32)]])
    assert len(list(nested(graph))) == 3
    assert len(schema.read(schema.write(schema.Model([graph]))).graphs) == 3


def test_depth():
    compare(nesting(15).pack(), [[np.array(True), np.ones(3, np.float32)]])


def test_subgraphs_that_unfold(monkeypatch):
    """2^15 copies of one."""
    monkeypatch.setattr("converter.frontends.tflite.control_flow.MOST_OPERATORS", 1000)
    with pytest.raises(UnsupportedError, match="unfold into more than 1000 operators"):
        tflite.read(nesting(15, both=True).pack())


def endless() -> FileBuilder:
    """x -> NEG without an end, of constants: what other operators compute while a file is read."""
    b = FileBuilder()
    y = b.tensor(np.float32, (3,), name="loop")
    b.operator("WHILE", [b.constant(np.ones(3), np.float32)], [y], loop(1, 2))
    b.ends([], [y])
    condition = b.subgraph()
    condition.ends([condition.tensor(np.float32, (3,))], [condition.constant(True, np.bool_)])
    body = b.subgraph()
    given, result = body.tensor(np.float32, (3,)), body.tensor(np.float32, (3,))
    body.operator("NEG", [given], [result])
    body.ends([given], [result])
    return b


def test_no_loop_runs_while_a_file_is_converted():
    model = runtime.load(converter.convert(endless().pack()).bytes, iteration_limit=100)
    with pytest.raises(schema.ExecutionError, match="does not end within the limit"):
        model()


@pytest.mark.parametrize("seed", range(2))
def test_mutations(seed):
    """Bytes and 32-bit words changed at random: a graph that can be run, or an XnnError, at once."""
    rng = np.random.default_rng(seed)
    words = np.array([0, 1, 2, 3, 4, 5, 2**31 - 1, 2**31, 2**32 - 1, 255], "<u4")
    for content in (deciding().pack(), nesting(3).pack()):
        original = np.frombuffer(content, np.uint8)
        for _ in range(250):
            mutated = original.copy()
            for _ in range(rng.integers(1, 4)):
                at = int(rng.integers(len(mutated) // 4)) * 4
                mutated[at : at + 4].view("<u4")[:] = rng.choice(words)
            with (
                contextlib.suppress(XnnError),
                np.errstate(all="ignore"),
                limits.iterations(50),
                limits.memory(1 << 20),
            ):
                graph = tflite.read(mutated.tobytes())
                schema.read(schema.write(schema.Model([graph])))
                shapes = [[size or 1 for size in tensor.shape or ()] for tensor in graph.arguments]
                if sum(math.prod(shape) for shape in shapes) < 1 << 16:
                    arrays = [np.ones(shape, t.dtype) for shape, t in zip(shapes, graph.arguments, strict=True)]
                    evaluate.run(graph, arrays, state={})


def test_loops_that_change_shapes_in_turn(rng):
    """The body turns its operands round, so that one widens after the other."""
    b = FileBuilder()
    count = b.tensor(np.int32, ())
    shapes = [(1, 4), (2, 4), (3, 4)]
    given = [b.tensor(np.float32, shape) for shape in shapes]
    after = [b.tensor(np.int32, ()), *(b.tensor(np.float32, shape) for shape in shapes)]
    b.operator("WHILE", [count, *given], after, loop(1, 2))
    b.ends([count, *given], after)
    condition, body = b.subgraph(), b.subgraph()
    for inner in (condition, body):
        n = inner.tensor(np.int32, ())
        operands = [inner.tensor(np.float32, shape) for shape in shapes]
        if inner is condition:
            less = inner.tensor(np.bool_, ())
            inner.operator("LESS", [n, inner.constant(2, np.int32)], [less], tfl.LessOptionsT())
            inner.ends([n, *operands], [less])
        else:
            following = inner.tensor(np.int32, ())
            inner.operator("ADD", [n, inner.constant(1, np.int32)], [following], options("Add"))
            inner.ends([n, *operands], [following, operands[1], operands[2], operands[0]])
    graph = tflite.read(b.pack())
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for start, order in ((0, (2, 0, 1)), (1, (1, 2, 0)), (2, (0, 1, 2))):
        outputs = evaluate.run(graph, [np.int32(start), *arrays])[1:]
        engine = list(runtime.load(schema.write(schema.Model([graph])))(np.int32(start), *arrays).values())[1:]
        for found in (outputs, engine):
            for output, index in zip(found, order, strict=True):
                np.testing.assert_array_equal(output, arrays[index])
