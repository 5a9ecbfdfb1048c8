"""Weights that are stored in fewer bits than they are computed with: float16, dynamic range, 4 bits, sparse."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

import converter
from converter.frontends import tflite
from converter.frontends.tflite.sparsity import densify
from schema import FormatError, Quantization, evaluate
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support.litert_files import Session, relative_difference
from tests.support.tflite_files import FileBuilder


def test_float16_weights_stay_float16(rng):
    b = FileBuilder()
    x = b.tensor(np.float32, (3, 64))
    half = b.constant(rng.normal(size=(32, 64)), np.float16)
    full, out = b.tensor(np.float32, (32, 64)), b.tensor(np.float32, (3, 32))
    b.operator("DEQUANTIZE", [half], [full], version=3)
    b.operator("FULLY_CONNECTED", [x, full, -1], [out], tfl.FullyConnectedOptionsT())
    content = b.finish([x], [out])
    graph = assert_same(content, [rng.normal(size=(3, 64)).astype(np.float32)])
    assert [node.op for node in graph.nodes] == ["FULLY_CONNECTED"]
    assert graph.nodes[0].inputs[1].constant.values.dtype == np.float16
    assert len(converter.convert(content).bytes) < 32 * 64 * 2 + 600


def test_a_dequantized_constant_is_stored_as_integers(rng):
    """Per channel, and with a zero point that makes nine bits of eight."""
    b = FileBuilder()
    x, out = b.tensor(np.float32, (6, 5)), b.tensor(np.float32, (6, 5))
    stored = []
    y = x
    for quantization in (Quantization(0.25, 0), Quantization([0.1, 0.2, 0.3, 0.4, 0.5], 0, 1), Quantization(0.5, -100)):
        constant = b.constant(rng.integers(-128, 128, (6, 5)), np.int8, quantization)
        real, total = b.tensor(np.float32, (6, 5)), b.tensor(np.float32, (6, 5))
        b.operator("DEQUANTIZE", [constant], [real], version=5 if quantization.per_channel else 2)
        b.operator("ADD", [y, real], [total])
        stored.append(real)
        y = total
    b.operator("NEG", [y], [out])
    graph = assert_same(b.finish([x], [out]), [rng.normal(size=(6, 5)).astype(np.float32)])
    constants = [node.inputs[1].constant for node in graph.nodes[:3]]
    assert [c.values.dtype.name for c in constants] == ["int8", "int8", "int16"]
    assert [c.axis for c in constants] == [0, 1, 0]


@pytest.mark.parametrize(
    ("op", "per_channel"),
    [
        ("FULLY_CONNECTED", False),
        ("FULLY_CONNECTED", True),
        ("CONV_2D", False),
        ("CONV_2D", True),
        ("DEPTHWISE_CONV_2D", True),
    ],
)
def test_dynamic_range(rng, op, per_channel):
    """int8 weights keep their integers and scales; activations stay float32, which LiteRT rounds to int8 as it runs."""
    b = FileBuilder()
    shape, axis = {
        "FULLY_CONNECTED": ((16, 8), 0),
        "CONV_2D": ((16, 3, 3, 8), 0),
        "DEPTHWISE_CONV_2D": ((1, 3, 3, 8), 3),
    }[op]
    x = b.tensor(np.float32, (4, 8) if op == "FULLY_CONNECTED" else (1, 9, 9, 8))
    channels = shape[axis]
    scale = rng.uniform(0.01, 0.02, channels) if per_channel else 0.015
    integers = rng.integers(-127, 128, shape).astype(np.int8)
    weights = b.constant(integers, None, Quantization(scale, 0, axis))
    bias, out = b.constant(rng.normal(size=channels), np.float32), b.tensor(np.float32, (4, channels))
    options = {
        "FULLY_CONNECTED": tfl.FullyConnectedOptionsT,
        "CONV_2D": tfl.Conv2DOptionsT,
        "DEPTHWISE_CONV_2D": tfl.DepthwiseConv2DOptionsT,
    }[op]()
    if op != "FULLY_CONNECTED":
        options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
        options.depthMultiplier = 1
    b.operator(op, [x, weights, bias], [out], options)
    content = b.finish([x], [out])
    graph = tflite.read(content)
    stored = graph.nodes[0].inputs[1]
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored.constant.values, integers)
    assert stored.constant.axis == axis
    np.testing.assert_allclose(stored.constant.channel_scale, np.broadcast_to(scale, channels), rtol=1e-6)
    x = rng.normal(size=graph.inputs[0].shape).astype(np.float32)
    (ours,) = evaluate.run(graph, [x])
    assert relative_difference([ours], Session(content).run([x])) < 0.02


def test_embedding_lookup(rng):
    b = FileBuilder()
    rows, out = b.tensor(np.int32, (5,)), b.tensor(np.float32, (5, 3))
    table = b.constant(rng.normal(size=(7, 3)), np.float32)
    b.operator("EMBEDDING_LOOKUP", [rows, table], [out])
    assert_same(b.finish([rows], [out]), [rng.integers(0, 7, 5).astype(np.int32)])


def test_embedding_lookup_of_integers(rng):
    b = FileBuilder()
    rows, out = b.tensor(np.int32, (5,)), b.tensor(np.float32, (5, 3))
    table = b.constant(rng.integers(-127, 128, (7, 3)), np.int8, Quantization(0.013))
    b.operator("EMBEDDING_LOOKUP", [rows, table], [out], version=3)
    assert_same(b.finish([rows], [out]), [rng.integers(0, 7, 5).astype(np.int32)])


def test_four_bits(rng):
    """Two integers in each byte, the lower half first; the odd one out has a byte of its own."""
    b = FileBuilder()
    integers = rng.integers(-7, 8, (5, 3)).astype(np.int8)
    flat = np.append(integers.ravel(), 0).astype(np.uint8) & 15
    x = b.tensor(np.float32, (2, 3))
    weights = b.tensor(np.int8, (5, 3), flat[::2] | flat[1::2] << 4, Quantization(0.1))
    b.graph.tensors[weights].type = tfl.TensorType.INT4
    out = b.tensor(np.float32, (2, 5))
    b.operator("FULLY_CONNECTED", [x, weights, -1], [out], tfl.FullyConnectedOptionsT())
    graph = tflite.read(b.finish([x], [out]))
    np.testing.assert_array_equal(graph.nodes[0].inputs[1].constant.values, integers)


INDICES = {"Int32Vector": np.int32, "Uint16Vector": np.uint16, "Uint8Vector": np.uint8}


def level(size=None, segments=None, indices=None, name="Int32Vector"):
    table = tfl.DimensionMetadataT()
    if size is not None:
        table.format, table.denseSize = tfl.DimensionType.DENSE, size
        return table
    table.format = tfl.DimensionType.SPARSE_CSR
    for field, values in (("arraySegments", segments), ("arrayIndices", indices)):
        vector = getattr(tfl, f"{name}T")()
        vector.values = np.array(values, INDICES[name])
        setattr(table, field, vector)
        setattr(table, field + "Type", getattr(tfl.SparseIndexVector, name))
    return table


def sparsity(order, levels, blocked=None):
    table = tfl.SparsityParametersT()
    table.traversalOrder, table.blockMap, table.dimMetadata = order, blocked, levels
    return table


@pytest.mark.parametrize("name", INDICES)
def test_sparse_rows(rng, name):
    """CSR: of each row the columns that hold something. LiteRT computes with it as it is."""
    dense = rng.normal(size=(6, 8)).astype(np.float32) * (rng.random((6, 8)) < 0.3)
    dense[2] = 0
    rows, columns = np.nonzero(dense)
    segments = np.searchsorted(rows, np.arange(7))
    b = FileBuilder()
    x, out = b.tensor(np.float32, (3, 8)), b.tensor(np.float32, (3, 6))
    table = sparsity([0, 1], [level(6), level(None, segments, columns, name)])
    weights = b.tensor(np.float32, (6, 8), dense[rows, columns], sparsity=table)
    full = b.tensor(np.float32, (6, 8))
    b.operator("DENSIFY", [weights], [full])
    b.operator("FULLY_CONNECTED", [x, full, -1], [out], tfl.FullyConnectedOptionsT())
    content = b.finish([x], [out])
    graph = tflite.read(content)
    np.testing.assert_array_equal(graph.nodes[0].inputs[1].value, dense)
    assert_same(content, [rng.normal(size=(3, 8)).astype(np.float32)])


def test_sparse_blocks():
    """Blocks of 1x2: rows, columns of blocks, then what each block holds."""
    raw = {
        "traversal_order": np.array([0, 1, 2]),
        "block_map": np.array([1]),
        "dim_metadata": [
            {"format": "DENSE", "dense_size": 2},
            {
                "format": "SPARSE_CSR",
                "dense_size": 0,
                "array_segments": ("Int32Vector", {"values": np.array([0, 1, 3])}),
                "array_indices": ("Int32Vector", {"values": np.array([2, 0, 1])}),
            },
            {"format": "DENSE", "dense_size": 2},
        ],
    }
    dense = densify(raw, np.arange(1, 7), (2, 6), "weights")
    np.testing.assert_array_equal(dense, [[0, 0, 0, 0, 1, 2], [3, 4, 5, 6, 0, 0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(indices=[0, 9, 1]), "sparse index is outside"),
        (dict(indices=[0, -1, 1]), "sparse index is outside"),
        (dict(segments=[0, 2, 1, 3]), "backwards"),
        (dict(segments=[0, 1, 2, 4]), "do not fit"),
        (dict(segments=[0, 3]), "do not fit"),
        (dict(indices=[0, 1]), "do not fit"),
        (dict(order=[0, 0]), "sparse axes in order"),
        (dict(order=[0]), "sparse axes in order"),
        (dict(blocked=[5], order=[0, 1, 2]), "sparse axes"),
        (dict(shape=(30000, 40000), size=30000), "too few for a sparse tensor"),
        (dict(size=-1), "a dense axis of size -1"),
        (dict(size=4), "do not fit 4 rows"),
    ],
)
def test_hostile_sparsity(change, message):
    given = dict(order=[0, 1], segments=[0, 1, 1, 3], indices=[0, 1, 3], shape=(3, 4), size=3, blocked=None) | change
    b = FileBuilder()
    table = sparsity(
        given["order"], [level(given["size"]), level(None, given["segments"], given["indices"])], given["blocked"]
    )
    x, out = b.tensor(np.float32, given["shape"]), b.tensor(np.float32, given["shape"])
    weights = b.tensor(np.float32, given["shape"], np.ones(3, np.float32), sparsity=table, name="weights")
    b.operator("ADD", [x, weights], [out])
    with pytest.raises(FormatError, match=f"tensor {weights} 'weights': .*{message}"):
        tflite.read(b.finish([x], [out]))
