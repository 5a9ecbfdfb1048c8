"""Files whose metadata is well-formed and says what cannot be: built with flatc's object API, which can say anything.

CASES: name -> (file, what the FormatError must say: a regular expression with the place).
"""

from __future__ import annotations

from schema.generated import xnn_generated as fb
from tests.corpus.objects import (
    BOOL,
    CONCATENATION,
    CONV,
    INT8,
    INT32,
    ONE,
    RELU,
    RUN,
    TWO,
    clustered,
    constant,
    conv,
    expected,
    factors,
    first_tensor,
    node,
    one_node,
    packed,
    rans,
    rans_table,
    relu_graph,
    sealed,
    sparse,
    stored,
    stream,
    tensor,
)

STEM = r"graph 0, node 0 \(CONV_2D 'stem'\): "
NODE = r"graph 0, node 0 \(RELU.*\): "

CASES: dict[str, tuple[bytes, str]] = {
    "model-no-graph": (sealed(), "no graph"),
    "model-newer-reader": (sealed(relu_graph(), minimumReader=99), "reader of version 99"),
    # tensor indices
    "index-minus-1": (one_node(RELU, [-1]), NODE + "an input that cannot be left out"),
    "index-minus-2": (one_node(RELU, [-2]), NODE + "tensor -2 is none of the 2"),
    "index-out-of-range": (one_node(RELU, [2]), NODE + "tensor 2 is none"),
    "index-largest": (one_node(RELU, [2**31 - 1]), NODE + "tensor 2147483647"),
    "index-output": (sealed(relu_graph(outputs=[9])), "graph 0, output 'y': tensor 9"),
    "index-input": (sealed(relu_graph(inputs=[-1])), "graph 0, input 'x': tensor -1"),
    "index-output-of-node": (one_node(RELU, [0], [-1]), NODE + "tensor -1"),
    # nodes
    "node-too-few-inputs": (one_node(RELU, []), NODE + "0 inputs; there are 1 to 1"),
    "node-too-many-inputs": (one_node(RELU, [0, 0]), NODE + "2 inputs"),
    "node-no-outputs": (one_node(RELU, [0], []), NODE + "0 outputs"),
    "node-no-vectors": (sealed(relu_graph(nodes=[fb.NodeT(op=RELU)])), NODE + "0 inputs"),
    "node-missing-attributes": (one_node(CONV, [0, 0]), r"node 0 \(CONV_2D.*attributes None"),
    "node-attributes-of-another-op": (
        one_node(RELU, attributes=fb.AxisAttributesT()),
        NODE + "attributes AxisAttributes, not None",
    ),
    "node-negative-axis": (
        one_node(CONCATENATION, [0, 0], attributes=fb.AxisAttributesT(axis=-7)),
        "CONCATENATION.*axis -7 is outside",
    ),
    "node-split-2^31": (
        one_node(fb.OpCode.UNPACK, attributes=fb.UnpackAttributesT(num=2**31 - 1)),
        "UNPACK.*2147483647",
    ),
    # order and names
    "order-output-never-computed": (sealed(relu_graph(nodes=[])), "graph 0: output 'y' is never computed"),
    "order-computed-twice": (sealed(relu_graph(nodes=[node(RELU), node(RELU)])), "node 1.*computed twice"),
    "order-its-own-input": (one_node(RELU, [1], [1]), NODE + "an input is computed later, or never"),
    "order-writes-an-input": (one_node(RELU, [0], [0]), NODE + "an output is a constant, an input"),
    "order-cycle": (
        sealed(
            relu_graph(
                tensors=[tensor(shape=[2]), tensor(), tensor()],
                nodes=[node(RELU, [2], [1]), node(RELU, [1], [2])],
            )
        ),
        NODE + "an input is computed later, or never",
    ),
    "order-one-output-twice": (
        sealed(relu_graph(nodes=[node(fb.OpCode.UNPACK, [0], [1, 1], fb.UnpackAttributesT(num=2))])),
        "UNPACK.*computed twice",
    ),
    "names-two-outputs": (sealed(relu_graph(outputs=[1, 1], outputNames=["y", "y"])), "two outputs have the same name"),
    "names-two-inputs": (
        sealed(
            relu_graph(tensors=[tensor(shape=[2]), tensor(), tensor(shape=[2])], inputs=[0, 2], inputNames=["x", "x"])
        ),
        "two inputs have the same name",
    ),
    "names-one-input-twice": (sealed(relu_graph(inputs=[0, 0], inputNames=["a", "b"])), "'b' is.*an input twice"),
    "names-too-few": (sealed(relu_graph(inputNames=[])), "graph 0: 0 names for 1 inputs"),
    "names-second-graph": (sealed(relu_graph(), relu_graph(outputs=[7])), "graph 1, output 'y': tensor 7"),
    # enums
    "enum-op": (one_node(60000), r"nodes\[0\]\.op: 60000 is no OpCode"),
    "enum-dtype": (first_tensor(shape=[2], dtype=200), r"tensors\[0\]\.dtype: 200 is no DType"),
    "enum-padding": (conv([3, 1, 1, 2], padding=9), "padding: 9 is no Padding"),
    "enum-activation": (conv([3, 1, 1, 2], activation=77), "activation: 77 is no Activation"),
    "enum-coding": (stored([6], values=fb.StreamT(size=24, coding=9)), "coding: 9 is no Coding"),
    "enum-requantization": (sealed(relu_graph(), requantization=5), "requantization: 5 is no Requantization"),
    "enum-union": (one_node(RELU, attributesType=99, attributes=fb.AxisAttributesT()), "attributes"),
    # unions that are null
    "union-null": (one_node(CONCATENATION, [0, 0], attributesType=fb.Attributes.AxisAttributes), "attributes None"),
    "union-without-type": (one_node(RELU, attributesType=0, attributes=fb.AxisAttributesT()), "attributes"),
    # shapes
    "shape-below-minus-1": (first_tensor(shape=[-2]), r"graph 0, tensor 0: shape \[-2\]"),
    "shape-nine-dimensions": (first_tensor(shape=[1] * 9), "graph 0, tensor 0: 9 dimensions"),
    "shape-2^62": (first_tensor(shape=[2**31 - 1] * 2), "takes [0-9]+ bytes"),
    "shape-beyond-2^63": (first_tensor(shape=[2**31 - 1] * 8), "takes [0-9]+ bytes"),
    "shape-nothing-of-2^63": (first_tensor(shape=[0] + [2**31 - 1] * 7), "takes [0-9]+ bytes"),
    "shape-of-constant-beyond-2^63": (stored([2**31 - 1] * 3), "graph 0, tensor 2: .*more than the file holds"),
    "shape-of-constant-unknown": (
        sealed(relu_graph(tensors=[tensor(shape=[2, 3]), tensor(), tensor(constant=constant())])),
        "graph 0, tensor 2: a constant of unknown shape",
    ),
    "shape-of-constant-minus-1": (stored([-1]), "graph 0, tensor 2: a constant of unknown shape"),
    "shape-constant-input": (
        sealed(relu_graph(tensors=[tensor(shape=[6], constant=constant()), tensor()])),
        "input 'x' is a constant",
    ),
    # element types
    "dtype-other-than-computed": (
        sealed(relu_graph(tensors=[tensor(shape=[2]), tensor(dtype=INT32)])),
        "declared int32, computed float32",
    ),
    "dtype-without-meaning": (
        sealed(relu_graph(tensors=[tensor(shape=[2], dtype=BOOL), tensor(dtype=BOOL)])),
        "RELU.*no meaning.*bool",
    ),
    "dtype-of-weights": (
        sealed(
            relu_graph(
                tensors=[
                    tensor(shape=[1, 4, 4, 1]),
                    tensor(),
                    tensor(shape=[1, 1, 1, 6], dtype=INT32, constant=constant(dtype=INT32)),
                ],
                nodes=[node(CONV, [0, 2], attributes=fb.Conv2DAttributesT(), name="stem")],
            )
        ),
        "CONV_2D 'stem'.*int32",
    ),
    "dtype-of-values": (stored([6], INT8), "values of float32 for a tensor of int8"),
    # quantization
    "scale-0-with-a-zero-point": (first_tensor(shape=[2], dtype=INT8, zeroPoint=5), "tensor 0: a scale"),
    "scale-nan": (first_tensor(shape=[2], dtype=INT8, scale=float("nan")), "tensor 0: a scale that is not finite"),
    "scale-infinite": (first_tensor(shape=[2], dtype=INT8, scale=float("inf")), "tensor 0: a scale that is not finite"),
    "scale-minus-1": (first_tensor(shape=[2], dtype=INT8, scale=-1.0), "tensor 0: a scale that is not finite"),
    "scale-of-channel-0": (first_tensor(shape=[2], dtype=INT8, channelScales=[1.0, 0.0]), "tensor 0: a scale"),
    "scale-of-float": (first_tensor(shape=[2], scale=1.0), "tensor 0: float32 with a scale"),
    "scales-of-another-number": (first_tensor(shape=[2], dtype=INT8, channelScales=[1.0] * 3), "tensor 0: 3 scales"),
    "scales-axis-out-of-range": (
        first_tensor(shape=[2], dtype=INT8, channelScales=[1.0] * 2, channelAxis=3),
        "tensor 0: 2 scales along axis 3",
    ),
    "scales-axis-negative": (
        first_tensor(shape=[2], dtype=INT8, channelScales=[1.0] * 2, channelAxis=-1),
        "tensor 0: 2 scales along axis -1",
    ),
    "zero-point-outside-of-int8": (
        first_tensor(shape=[2], dtype=INT8, scale=1.0, zeroPoint=300),
        "tensor 0: a zero point",
    ),
    "zero-point-of-channel": (
        first_tensor(shape=[2], dtype=INT8, channelScales=[1.0] * 2, channelZeroPoints=[0, -129]),
        "tensor 0: a zero point outside of int8",
    ),
    "zero-points-of-another-number": (
        first_tensor(shape=[2], dtype=INT8, channelScales=[1.0] * 2, channelZeroPoints=[0]),
        "1 zero points for 2",
    ),
    # windows, groups, blocks
    "window-stride-0": (conv([3, 1, 1, 2], strideH=0), STEM + "stride 0x1"),
    "window-dilation-negative": (conv([3, 1, 1, 2], dilationW=-1), STEM + "dilation 1x-1"),
    "window-pads-for-valid": (conv([3, 1, 1, 2], padding=0, pads=[1]), STEM + "pads"),
    "window-pads-negative": (conv([3, 1, 1, 2], padding=2, pads=[-1, 0, 0, 0]), STEM + "pads"),
    "window-larger-than-input": (conv([1, 9, 9, 2]), "'stem'.*does not fit"),
    "window-empty": (conv([1, 0, 1, 2]), "'stem'.*empty"),
    "window-pool-0": (
        one_node(fb.OpCode.MAX_POOL_2D, attributes=fb.Pool2DAttributesT(filterH=0)),
        r"MAX_POOL_2D.*filter 0x1",
    ),
    "window-clamp-empty": (conv([3, 1, 1, 2], activation=4, clampMin=2.0, clampMax=1.0), STEM + "clamp"),
    "window-clamp-nan": (conv([3, 1, 1, 2], activation=4, clampMin=float("nan")), STEM + "clamp_min is not a number"),
    "groups-0": (conv([3, 1, 1, 0]), "'stem'.*no input channels"),
    "groups-that-do-not-divide": (conv([3, 1, 1, 3]), "'stem'.*groups of 3"),
    "block-0": (
        sealed(
            relu_graph(
                tensors=[tensor(shape=[1, 4, 4, 1]), tensor()],
                nodes=[node(fb.OpCode.SPACE_TO_DEPTH, attributes=fb.BlockSizeAttributesT())],
            )
        ),
        "SPACE_TO_DEPTH.*block",
    ),
    "block-negative": (
        sealed(
            relu_graph(
                tensors=[tensor(shape=[1, 4, 4, 4]), tensor()],
                nodes=[node(fb.OpCode.DEPTH_TO_SPACE, attributes=fb.BlockSizeAttributesT(blockSize=-2))],
            )
        ),
        "DEPTH_TO_SPACE.*block",
    ),
    # stored values
    "stream-outside": (stored([100]), "tensor 2: 24 bytes for 100 numbers"),
    "stream-past-the-section": (
        stored([7], values=stream(28)),
        "tensor 2: values are bytes 0 to 28 of a section of 24",
    ),
    "stream-wraps-around": (
        stored([6], values=stream(32, 2**64 - 8)),
        "tensor 2: values are bytes 18446744073709551608",
    ),
    "stream-size-2^64": (stored([6], values=stream(2**64 - 1, 24)), "tensor 2: values are bytes 24"),
    "stream-of-another-length": (stored([7]), "tensor 2: 24 bytes for 7 numbers"),
    "stream-misaligned-length": (stored([6], values=stream(23)), "tensor 2: 23 bytes for 6 numbers"),
    "bits-0": (packed(24, 0, coding=1), "tensor 2: 0 bits"),
    "bits-9-of-uint8": (packed(27, 9), "tensor 2: 9 bits for numbers of uint8"),
    "bits-200": (packed(24, 200), "tensor 2: 200 bits"),
    "bits-of-another-length": (packed(5, 2), "tensor 2: 5 bytes for 24 numbers of 2 bits"),
    "bits-of-floats": (stored([6], values=stream(24, bits=3)), "tensor 2: packed numbers of float32"),
    "bits-padding-not-zero": (packed(3, 1, shape=[23], weights=b"\xff" * 24), "tensor 2: the padding"),
    "bool-of-2": (stored([24], BOOL, b"\2" * 24, dtype=BOOL), "tensor 2: a bool of 2"),
    "rans-empty": (rans(b""), "tensor 2: an empty stream"),
    "rans-of-nothing": (rans(b"\0" + ONE + RUN, 0), "tensor 2: an entropy-coded stream of nothing"),
    "rans-2^255-lanes": (rans(b"\xff" + ONE + RUN), "tensor 2: 2.255 lanes"),
    "rans-lanes-without-states": (rans(b"\4" + ONE + RUN), "tensor 2: 4 bytes for the states of 16 lanes"),
    "rans-bomb": (rans(b"\0" + ONE + RUN, 1 << 15), "tensor 2: 32768 symbols of 1 lanes"),
    "rans-bomb-of-2^31": (rans(b"\0" + ONE + RUN, 2**31 - 1), "tensor 2: .*far more than the file holds"),
    "rans-table-missing": (rans(b"\0\0\0"), "tensor 2: 2 bytes are too few for a table"),
    "rans-table-without-end": (rans(b"\0" + rans_table(0, 40, symbols=9)), "tensor 2: the table .* does not end"),
    "rans-table-cut": (rans(b"\0" + rans_table(0, 1)), "tensor 2: the table .* does not end"),
    "rans-table-of-scale-15": (rans(b"\0" + rans_table(2 << 3, 2, kind=7) + RUN), "tensor 2: a table .* kind 7"),
    "rans-table-of-interval-64": (
        rans(b"\0" + rans_table(2 << 3, 2, kind=6 << 5) + RUN),
        "tensor 2: a table .* kind 192",
    ),
    "rans-symbol-256": (rans(b"\0" + rans_table(2 << 3, 2, 0, 255, 2) + RUN), "tensor 2: .* symbols 255 to 256"),
    "rans-all-frequencies-0": (rans(b"\0" + rans_table(0, 2) + RUN), "tensor 2: .* all 0"),
    "rans-level-too-high": (rans(b"\0" + rans_table(127 << 3, 2) + RUN), "tensor 2: a frequency of level 127"),
    "rans-level-negative": (rans(b"\0" + rans_table(1 << 11, 2, symbols=2) + RUN), "tensor 2: .* level -1"),
    "rans-table-padding": (rans(b"\0" + rans_table(2 << 3 | 1 << 15, 2) + RUN), "tensor 2: the padding"),
    "rans-half-a-word": (rans(b"\0" + TWO + RUN + b"\0"), "tensor 2: 5 bytes for the states of 1 lanes"),
    "rans-too-few-words": (rans(b"\0" + TWO + RUN, 1000), "tensor 2: the words .* are not those of 1000"),
    "rans-too-many-words": (rans(b"\0" + TWO + RUN + bytes(8)), "tensor 2: the words .* are not those of 24"),
    "rans-state-0": (rans(b"\0" + ONE + bytes(4)), "tensor 2: a lane starts in state 0"),
    "rans-last-state": (rans(b"\0" + ONE + b"\0\0\2\0"), "tensor 2: a lane ends in a state"),
    "rans-last-symbols-padding": (rans(b"\0" + TWO + b"\0\x80\1\0", 10), "tensor 2: the padding"),
    "rans-last-symbol-of-3": (
        rans(b"\0" + rans_table(2 << 3 | 3 << 10, 2, symbols=3) + b"\3\0\1\0", 8),
        "tensor 2: symbol 3, which has no frequency",
    ),
    "rans-of-floats": (rans(b"\0" + ONE + RUN, dtype=0), "tensor 2: symbols of 8 bits for numbers of float32"),
    "rans-of-4-bits": (rans(b"\0" + ONE + RUN, bits=4), "tensor 2: symbols of 4 bits for numbers of uint8"),
    "rans-bools-of-5": (rans(b"\0" + ONE + RUN, dtype=BOOL, bits=5), "tensor 2: symbols of 5 bits"),
    "rans-bools-beyond-their-symbol": (
        rans(b"\0" + rans_table(2 << 3, 2, 0, 4) + RUN, 24, BOOL, 2),
        "tensor 2: a symbol with more than its 2 bools",
    ),
    "rans-bools-beyond-the-last": (
        rans(b"\0" + rans_table(2 << 3, 2, 0, 255) + RUN, 23, BOOL, 8),
        "tensor 2: a symbol with more than its 8 bools",
    ),
    "rans-index-past-the-end": (
        stored(
            [24],
            weights=b"\0" + rans_table(2 << 3, 2, 0, 9) + RUN + bytes(6),
            values=fb.StreamT(size=10, coding=fb.Coding.RANS, bits=8),
            codebook=stream(4, 12),
        ),
        "tensor 2: index 9 into a codebook of 1",
    ),
    "rans-codebook": (
        stored([4], weights=bytes(24), values=stream(4), codebook=fb.StreamT(size=9, coding=fb.Coding.RANS, bits=8)),
        "tensor 2: a codebook of coding RANS",
    ),
    "sparse-more-positions": (sparse(b"\x07", 2), "tensor 2: 3 positions for 2 non-zero values"),
    "sparse-fewer-positions": (sparse(b"\x01", 2), "tensor 2: 1 positions for 2 non-zero values"),
    "sparse-position-past-the-tensor": (sparse(b"\x41", 2), "tensor 2: the padding"),
    "sparse-more-values-than-elements": (sparse(b"\x3f", 7), "tensor 2: 7 non-zero values of 6"),
    "sparse-2^64-values": (sparse(b"\x3f", 2**64 - 1), "tensor 2: 18446744073709551615 non-zero values of 6"),
    "sparse-positions-too-long": (sparse(b"\x03\x00", 2), "tensor 2: 2 bytes for 6 numbers of 1 bits"),
    "sparse-positions-of-8-bits": (sparse(b"\x03", 2, bits=8), "tensor 2: bools of 8 bits"),
    "sparse-without-positions": (stored([6], nonzeros=2), "tensor 2: 2 non-zero values, but no positions"),
    "codebook-index-past-the-end": (clustered(b"\0\1\0\2", 2), "tensor 2: index 2 into a codebook of 2"),
    "codebook-empty": (clustered(b"\0\0\0\0", 0), "tensor 2: a codebook of 0 bytes"),
    "codebook-of-half-a-number": (clustered(b"\0\0\0\0", 2, rest=2), "tensor 2: a codebook of 10 bytes"),
    "codebook-of-bits": (clustered(b"\0\0\0\0", 2, bits=4), "tensor 2: a codebook of coding PACKED"),
    "bias-expected-from-itself": (expected(0), "tensor 3: expected from the tensor 0 before it"),
    "bias-expected-from-nothing": (expected(4), "tensor 3: expected from the tensor 4 before it"),
    "bias-expected-from-a-kernel-without-scales": (expected(1), "tensor 3: 6 values are expected from a tensor that"),
    "bias-expected-from-an-input": (expected(3), "tensor 3: 6 values are expected from a tensor that"),
    "scales-expected-by-no-number": (
        factors(6, scaleFactor=float("inf"), dtype=INT8, values=stream(6)),
        "tensor 2: a prediction by",
    ),
    "factor-axis-out-of-range": (factors(6, axis=1), "tensor 2: a channel scale along axis 1"),
    "factor-axis-negative": (factors(6, axis=-1), "tensor 2: a channel scale along axis -1"),
    "factors-too-few": (factors(5), "tensor 2: 20 bytes for 6 numbers"),
    "factors-of-integers": (factors(6, of=INT32, dtype=INT32), "tensor 2: int32 with a channel scale"),
}
