"""Functions of elements as one node of a plan: the bits that they have one by one."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
import schema
from runtime import chains, profiling
from runtime.steps import HostStep, NativeStep
from schema import Model, Node, Quantization, Tensor
from schema.ops import attributes as a
from tests.support.engine import compare, graph_of, run
from tests.support.guarded import run_guarded_graph

SHAPE = (2, 5, 7, 24)
UNARY = ["RELU", "TANH", "SOFTSIGN", "ABS", "SQUARE", "LOGISTIC"]
BINARY = ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "SQUARED_DIFFERENCE"]
ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")


class Net:
    """A chain that grows: `net("MUL", scale)`, `net("SUB", x, swap=True)`."""

    def __init__(self, rng, shape=SHAPE):
        self.rng, self.nodes, self.inputs, self.arrays = rng, [], [], []
        self.y = self.first = self.input(*shape)

    def input(self, *shape):
        self.inputs.append(Tensor("x", np.float32, shape))
        self.arrays.append(self.rng.normal(size=shape).astype(np.float32))
        return self.inputs[-1]

    def constant(self, *shape):
        return Tensor.from_array("c", (self.rng.normal(size=shape) + 2).astype(np.float32))

    def __call__(self, op, *others, swap=False, activation="NONE"):
        operands = [*others, self.y] if swap else [self.y, *others]
        attributes = a.ArithmeticAttributes(activation) if op in ARITHMETIC else None
        made = Tensor(op, np.float32)
        self.nodes.append(Node(op, operands, [made], attributes, op.lower()))
        self.y = made
        return made

    def kinds(self, *outputs):
        """The chains and other nodes of the plan, as lists of ops."""
        steps = run(self.graph(*outputs), self.arrays)[1]
        nodes = [n for step in steps if isinstance(step, NativeStep) for n in step.nodes]
        return [[s.node.op for s in n.stages] if isinstance(n, chains.Chain) else n.op for n in nodes]

    def graph(self, *outputs):
        return graph_of(self.nodes, self.inputs, outputs or [self.y])

    def one_by_one(self):
        """What the kernels give where every result is wanted too, so that nothing is chained."""
        outputs = [n.outputs[0] for n in self.nodes]
        results, steps = run(graph_of(self.nodes, self.inputs, outputs), self.arrays)
        assert not any(isinstance(n, chains.Chain) for step in steps for n in getattr(step, "nodes", []))
        return results[-1]

    def check(self, threads=1):
        """Equal bits, and close to the references."""
        (result,), steps = run(self.graph(), self.arrays, threads)
        assert not any(isinstance(step, HostStep) for step in steps)
        np.testing.assert_array_equal(result, self.one_by_one())
        compare(self.nodes, self.inputs, [self.y], self.arrays, rtol=1e-5, threads=threads)


def test_operands_of_every_kind(rng):
    net = Net(rng)
    net("TANH")
    net("MUL", net.constant(24), activation="RELU")
    net("SUB", net.constant(), swap=True)
    net("ADD", net.input(*SHAPE), activation="RELU6")
    net("DIV", net.constant(7, 24))
    net("MAXIMUM", net.constant(1, 1, 1, 1))
    net("MUL", net.first)
    assert net.kinds() == [["TANH", "MUL", "SUB", "ADD", "DIV", "MAXIMUM", "MUL"]]
    net.check(threads=2)


@given(seed=st.integers(0, 1 << 20), length=st.integers(2, 6))
def test_drawn_chains(seed, length):
    rng = np.random.default_rng(seed)
    shape = [(3000,), (2, 3, 5), (37, 64), (3, 700, 3), (1, 1, 1, 5)][rng.integers(5)]
    net = Net(rng, shape)
    for _ in range(length):
        if rng.random() < 0.5:
            net(UNARY[rng.integers(len(UNARY))])
            continue
        kind = rng.integers(4)
        other = net.input(*shape) if kind == 0 else net.constant(*shape[[len(shape), -1, 0][kind - 1] :])
        net(BINARY[rng.integers(len(BINARY))], other, swap=bool(rng.integers(2)))
    with np.errstate(all="ignore"):
        (result,), steps = run(net.graph(), net.arrays, 2)
        assert len(steps) == 1
        np.testing.assert_array_equal(result, net.one_by_one())


def test_more_channels_than_a_block(rng):
    net = Net(rng, (3, 5000))
    net("ABS")
    net("MUL", net.constant(5000))
    assert net.kinds() == ["ABS", "MUL"]
    net("NEG")
    net("ADD", net.constant())
    assert net.kinds() == ["ABS", "MUL", ["NEG", "ADD"]]
    net.check()


def test_results_that_others_read_end_a_chain(rng):
    net = Net(rng)
    middle = net("TANH")
    net("ABS")
    net("MUL", middle)
    assert net.kinds() == ["TANH", ["ABS", "MUL"]]
    wanted = net.y
    net("NEG")
    assert net.kinds(wanted, net.y) == ["TANH", ["ABS", "MUL"], "NEG"]
    net.check()


def test_operands_that_grow_the_shape_end_a_chain(rng):
    net = Net(rng, (1, 1, 24))
    net("TANH")
    net("ADD", net.input(4, 5, 24))
    net("ABS")
    assert net.kinds() == ["TANH", ["ADD", "ABS"]]
    net.check()


def test_operands_that_vary_along_other_axes_end_a_chain(rng):
    net = Net(rng)
    net("TANH")
    net("MUL", net.input(2, 1, 1, 24))
    net("ABS")
    assert net.kinds() == ["TANH", "MUL", "ABS"]


def test_two_branches_of_which_one_is_chained(rng):
    net = Net(rng)
    left = net("TANH")
    net.y = net.input(*SHAPE)
    net("ABS")
    net("MUL", left, swap=True)
    assert sorted(map(str, net.kinds())) == ["ABS", "['TANH', 'MUL']"]
    net.check()


def integers(stages):
    """QUANTIZE, stages of (op, output scale), DEQUANTIZE."""
    x = Tensor("x", np.float32, (3, 100))
    y = Tensor("q", np.int8, None, Quantization(0.05, 3))
    nodes = [Node("QUANTIZE", [x], [y], a.DTypeAttributes(np.dtype(np.int8)))]
    for op, attributes, scale in stages:
        made = Tensor(op, np.int8, None, scale)
        nodes.append(Node(op, [y], [made], attributes))
        y = made
    nodes.append(Node("DEQUANTIZE", [y], [Tensor("y", np.float32)]))
    return nodes, x


def test_tables_become_one(rng):
    int8 = a.DTypeAttributes(np.dtype(np.int8))
    nodes, x = integers(
        [
            ("TANH", None, Quantization(1 / 128, 0)),
            ("QUANTIZE", int8, Quantization(0.02, -5)),
            ("LEAKY_RELU", a.AlphaAttributes(0.3), Quantization(0.01, 9)),
        ]
    )
    arrays = [(4 * rng.normal(size=(3, 100))).astype(np.float32)]
    compare(nodes, [x], nodes[-1].outputs, arrays)
    (step,) = run(graph_of(nodes, [x], nodes[-1].outputs), arrays)[1]
    assert [type(n).__name__ for n in step.nodes] == ["Node", "Chain"]
    assert [s.node.op for s in step.nodes[1].stages] == ["TANH", "QUANTIZE", "LEAKY_RELU", "DEQUANTIZE"]


def test_tables_of_several_plans(rng):
    """Each has the table of its own chain, whatever was there before."""
    nodes, x = integers([("TANH", None, Quantization(1 / 128, 0)), ("ABS", None, Quantization(1 / 128, -128))])
    x.shape = (None, 100)
    graph = graph_of(nodes, [x], nodes[-1].outputs)
    model = runtime.load(schema.write(Model([graph])), threads=1)
    for batch in range(1, 20):
        array = rng.normal(size=(batch, 100)).astype(np.float32)
        np.testing.assert_array_equal(model(array), schema.evaluate.run(graph, [array])[0])


def test_the_profile_names_all_members(rng):
    net = Net(rng)
    net("TANH")
    net("MUL", net.input(*SHAPE))
    model = runtime.load(schema.write(Model([net.graph()])), threads=1)
    (row,) = profiling.profile(model, net.arrays, 2, 1).nodes
    assert (row.op, row.layer, row.kernel) == ("TANH+MUL", "mul", "elementwise_chain_f32")
    assert row.bytes_moved == 4 * 3 * int(np.prod(SHAPE))


@pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("shape", [(1,), (2047,), (2049,), (33, 17), (3, 1000)])
def test_memory_outside_of_operands_is_not_touched(shape, at_end, rng):
    net = Net(rng, shape)
    net("ABS")
    net("ADD", net.constant(shape[-1]))
    net("MUL", net.input(*shape), swap=True)
    net("SUB", net.constant())
    (result,) = run_guarded_graph(net.graph(), net.arrays, at_end)
    np.testing.assert_array_equal(result, net.one_by_one())
