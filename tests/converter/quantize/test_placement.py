import numpy as np

from converter.quantize.placement import place
from schema import Tensor
from schema.ops.attributes import DTypeAttributes, ReduceAttributes
from tests.support.float_graphs import Builder


def placed(builder, *outputs, **arguments):
    placement = place(builder.end(*outputs), **arguments)
    return {node.name: placement.reasons.get(node, "int8") for node in placement.graph.nodes
            if node in placement.rules or node in placement.reasons}  # fmt: skip


def test_a_plain_network_is_all_int8():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    y = builder.conv(x, 4, name="conv")
    y = builder.node("ADD", y, builder.node("RELU", y, name="relu"), name="add")
    y = builder.node("SOFTMAX", builder.dense(builder.node("MEAN", y, builder.constant([1, 2], np.int32)), 3))
    assert set(placed(builder, y).values()) == {"int8"}


def test_ops_without_an_int8_form_stay_float():
    builder = Builder()
    x = builder.input("x", None, 8)
    y = builder.dense(builder.node("CUMSUM", builder.dense(x, 4), builder.constant(1, np.int32), name="sums"), 4)
    z = builder.dense(builder.node("LOG", builder.dense(x, 4), name="log"), 4)
    found = placed(builder, y, z)
    assert found.pop("sums") == found.pop("log").replace("LOG", "CUMSUM") == "CUMSUM is too sensitive for 8-bit inputs"
    assert set(found.values()) == {"int8"}
    builder = Builder()
    greater = builder.node(
        "GREATER", builder.dense(builder.input("x", None, 8), 4), builder.constant(0), name="greater"
    )
    assert placed(builder, greater)["greater"] == "GREATER has no int8 form"


def test_layer_normalization_stays_float_between_int8_convolutions():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    before = builder.conv(x, 4, name="before")
    axes, keep = builder.constant([3], np.int32), ReduceAttributes(keep_dims=True)
    mean = builder.node("MEAN", before, axes, attributes=keep)
    variance = builder.node("MEAN", builder.node("SQUARED_DIFFERENCE", before, mean), axes, attributes=keep)
    inverse = builder.node("RSQRT", builder.node("ADD", variance, builder.constant(1e-3)))
    factor = builder.node("MUL", inverse, builder.constant(np.ones(4)))
    shift = builder.node("SUB", builder.constant(np.zeros(4)), builder.node("MUL", mean, factor))
    y = builder.node("ADD", builder.node("MUL", before, factor), shift)
    after = builder.conv(y, 4, name="after")
    found = placed(builder, builder.node("ADD", after, before, name="residual"))
    assert [name for name, reason in found.items() if reason == "int8"] == ["before", "after", "residual"]
    assert "it stands between operations that stay float" in found.values()


def test_shape_arithmetic_is_not_real_and_shape_reads_either():
    builder = Builder()
    x = builder.input("x", None, 4, 4, 3)
    y = builder.conv(x, 4, name="conv")
    shape = builder.node("SHAPE", y, attributes=DTypeAttributes(np.dtype(np.int32)), name="shape")
    batch = builder.node("GATHER", shape, builder.constant([0], np.int32), name="batch")
    target = builder.node("CONCATENATION", batch, builder.constant([64], np.int32), name="target")
    found = placed(builder, builder.node("RESHAPE", y, target, name="flatten"))
    assert found == {"conv": "int8", "flatten": "int8"}


def test_computed_weights_and_other_dtypes_stay_as_they_are():
    builder = Builder()
    x = builder.input("x", None, 4)
    w = builder.input("w", 3, 4)
    tokens = builder.input("tokens", None, 2, dtype=np.int32)
    found = placed(
        builder,
        builder.node("FULLY_CONNECTED", x, w, name="dense"),
        builder.node("ADD", tokens, tokens, name="integers"),
        builder.node("GATHER", builder.constant(np.ones((9, 4))), tokens, name="embedding"),
    )
    assert found == {"dense": "its weights are computed, not constant", "embedding": "int8"}


def test_what_is_not_finite_stays_float():
    builder = Builder()
    y = builder.conv(builder.input("x", None, 4, 4, 3), 4, name="conv")
    paddings = builder.constant([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)
    z = builder.node("PADV2", y, paddings, builder.constant(-np.inf), name="pad")
    found = placed(builder, z, builder.node("RELU", y, name="relu"))
    assert found == {"conv": "int8", "pad": "a constant operand is not finite", "relu": "int8"}
    assert isinstance(y, Tensor)
    found = placed(builder, z, unbounded={y: "too wide"})
    assert found["conv"] == found["relu"] == "too wide"
