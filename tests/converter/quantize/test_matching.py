import numpy as np

from converter.quantize import Options, quantize
from converter.quantize.matching import matched
from converter.rewriter import copy
from schema import Node, Quantization, Tensor, inference
from schema.ops.attributes import DTypeAttributes
from tests.support.float_graphs import Builder


def test_conversions_of_the_float_graph_are_told_from_those_put_in(rng):
    """A float graph that rounds a tensor in the middle in two ways, without names: the first tells its range,
    the second rounds integers again.
    """
    builder = Builder()
    x = builder.input("x", None, 6)
    y = builder.dense(x, 4, name="before")
    learned, first = Tensor("", np.int8, y.shape, Quantization(0.2)), Tensor("", np.float32, y.shape)
    rounded, back = Tensor("", np.int8, y.shape, Quantization(0.1)), Tensor("", np.float32, y.shape)
    builder.graph.nodes += [
        Node("QUANTIZE", [y], [learned], DTypeAttributes(np.dtype(np.int8))),
        Node("DEQUANTIZE", [learned], [first]),
        Node("QUANTIZE", [y], [rounded], DTypeAttributes(np.dtype(np.int8))),
        Node("DEQUANTIZE", [rounded], [back]),
    ]
    real = builder.end(builder.dense(back, 3, name="after"), builder.dense(first, 3, name="beside"))
    inference.annotate(real)
    quantized = copy(real)
    quantize(quantized, Options("int8"), rng.normal(0, 1, (20, 6)).astype(np.float32))
    pairs = list(matched(real, quantized))
    assert len(quantized.nodes) > len(pairs) + 1
    assert [a for a, _ in pairs] == [node for node in real.nodes if node.outputs[0] not in (learned, first, back)]
    for a, b in pairs:
        assert (a.op, a.name) == (b.op, b.name)
        assert b.outputs[0] is a.outputs[0] or b.outputs[0].quantization is not None
    assert pairs[1][1].outputs[0] is rounded
