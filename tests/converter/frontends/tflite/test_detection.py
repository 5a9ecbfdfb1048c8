"""NON_MAX_SUPPRESSION_V4 and V5, and the custom TFLite_Detection_PostProcess, against LiteRT."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

import converter
import runtime
from converter.frontends import tflite
from converter.frontends.tflite.flexbuffer import read_map
from schema import FormatError, Quantization, evaluate
from tests.converter.frontends.tflite.comparing import assert_same, record
from tests.support.drawing import generators
from tests.support.litert_files import Session
from tests.support.parity import assert_close
from tests.support.tflite_files import FileBuilder

OPTIONS = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "detections_per_class": 100,
    "use_regular_nms": False,
    "nms_score_threshold": 0.2,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Corners in any order; many overlap."""
    corner, size = rng.uniform(0, 1, (count, 2)), rng.uniform(0.2, 0.9, (count, 2))
    result = np.concatenate([corner, corner + size], axis=1)
    result[::3] = result[::3, [2, 3, 0, 1]]
    return result.astype(np.float32)


@given(st.data())
def test_non_max_suppression(data):
    draw, rng = data.draw, data.draw(generators)
    count, most = draw(st.integers(1, 40)), draw(st.integers(1, 20))
    version = draw(st.sampled_from(["V4", "V5"]))
    b = FileBuilder()
    operands = [b.tensor(np.float32, (count, 4)), b.tensor(np.float32, (count,)), b.constant(most, np.int32)]
    operands += [b.constant(draw(st.floats(0.125, 0.9375, width=32)), np.float32)]
    operands += [b.constant(draw(st.sampled_from([-1.0, 0.0, 0.3])), np.float32)]
    outputs = [b.tensor(np.int32, (most,)), b.tensor(np.int32, ())]
    if version == "V5":
        operands += [b.constant(draw(st.sampled_from([0.0, 0.3, 1.0])), np.float32)]
        outputs.insert(1, b.tensor(np.float32, (most,)))
    b.operator(f"NON_MAX_SUPPRESSION_{version}", operands, outputs)
    scores = rng.permutation(np.linspace(-0.5, 1, count)).astype(np.float32)  # all differ: LiteRT's heap orders ties
    assert_same(b.finish(operands[:2], outputs), [boxes(rng, count), scores])


def test_the_number_of_boxes_may_be_fed(rng):
    b = FileBuilder()
    operands = [b.tensor(np.float32, (9, 4)), b.tensor(np.float32, (9,)), b.tensor(np.int32, ())]
    operands += [b.constant(v, np.float32) for v in (0.5, 0.1)]
    outputs = [b.tensor(np.int32, ()), b.tensor(np.int32, ())]
    b.operator("NON_MAX_SUPPRESSION_V4", operands, outputs)
    arrays = [boxes(rng, 9), rng.permutation(9).astype(np.float32), np.array(4, np.int32)]
    assert_same(b.finish(operands[:3], outputs), arrays)


def postprocess(options: dict, count: int, classes: int, anchors: np.ndarray, quantization=None) -> bytes:
    b = FileBuilder()
    dtype = np.float32 if quantization is None else np.uint8
    encodings = b.tensor(dtype, (1, count, 4), None, quantization and quantization[0])
    scores = b.tensor(dtype, (1, count, classes), None, quantization and quantization[1])
    if quantization is None:
        stored = b.constant(anchors, np.float32)
    else:
        stored = b.constant((anchors / quantization[2].scale).round(), np.uint8, quantization[2])
    most = options["max_detections"] * options["max_classes_per_detection"]
    outputs = [b.tensor(np.float32, s) for s in ((1, most, 4), (1, most), (1, most), (1,))]
    add_postprocess(b, [encodings, scores, stored], outputs, options)
    return b.finish([encodings, scores], outputs)


def add_postprocess(b: FileBuilder, inputs: list[int], outputs: list[int], options: dict) -> None:
    packed = bytes(flexbuffers.Dumps(options))
    b.operator("CUSTOM", inputs, outputs, custom="TFLite_Detection_PostProcess", custom_options=packed)


def anchors_of(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.concatenate([rng.uniform(0.1, 0.9, (count, 2)), rng.uniform(0.2, 0.6, (count, 2))], axis=1)


@given(st.data())
def test_detection_postprocess(data):
    draw, rng = data.draw, data.draw(generators)
    count, classes, background = draw(st.integers(12, 40)), draw(st.integers(1, 4)), draw(st.integers(0, 1))
    options = OPTIONS | {
        "num_classes": classes,
        "max_detections": draw(st.integers(1, 12)),
        "max_classes_per_detection": draw(st.integers(1, classes)),
        "detections_per_class": draw(st.integers(1, 12)),
        "use_regular_nms": draw(st.booleans()),
        "nms_score_threshold": draw(st.sampled_from([0.0, 0.2, 0.6])),
        "nms_iou_threshold": draw(st.floats(0.2, 0.9)),
    }
    content = postprocess(options, count, classes + background, anchors_of(rng, count))
    scores = rng.permutation(np.linspace(0, 1, count * (classes + background))).astype(np.float32)
    arrays = [rng.normal(0, 3, (1, count, 4)).astype(np.float32), scores.reshape(1, count, -1)]
    assert_same_detections(content, arrays, 1 if options["use_regular_nms"] else options["max_classes_per_detection"])


def assert_same_detections(content: bytes, arrays: list[np.ndarray], each: int) -> None:
    """What is detected is LiteRT's; the rest, which LiteRT leaves as its memory was, is 0."""
    expected = Session(content).run(arrays)
    count = int(expected[3][0]) * each
    converted = converter.convert(content).bytes
    for ours in (
        evaluate.run(tflite.read(content), arrays),
        list(runtime.load(converted, threads=1)(*arrays).values()),
    ):
        np.testing.assert_array_equal(ours[3], expected[3])
        for mine, theirs in zip(ours[:3], expected[:3], strict=True):
            assert mine.shape == theirs.shape
            assert_close(mine[:, :count], theirs[:, :count], 2e-6)
            assert not mine[:, count:].any()
    record(tflite.read(content))


def test_quantized_boxes_and_scores(rng):
    quantization = (Quantization(0.05, 128), Quantization(1 / 256, 0), Quantization(1 / 255, 0))
    content = postprocess(OPTIONS, 60, 3, anchors_of(rng, 60), quantization)
    scores = rng.permutation(180) + 40
    arrays = [rng.integers(0, 256, (1, 60, 4)).astype(np.uint8), scores.astype(np.uint8).reshape(1, 60, 3)]
    assert_same_detections(content, arrays, 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_detections", 0, "max_detections is 0"),
        ("max_detections", 1 << 30, "max_detections is"),
        ("max_detections", 1.5, "max_detections is 1.5"),
        ("num_classes", float("nan"), "num_classes is nan"),
        ("num_classes", 7, "3 scores a box, for 7 classes"),
        ("nms_iou_threshold", 0.0, "iou_threshold is 0"),
        ("y_scale", -1.0, "y_scale is -1"),
        ("y_scale", "ten", "its options lack y_scale"),
        ("w_scale", None, "its options lack w_scale"),
    ],
)
def test_refused_options(rng, name, value, message):
    options = {k: v for k, v in (OPTIONS | {name: value}).items() if v is not None}
    b = FileBuilder()
    tensors = [b.tensor(np.float32, s) for s in ((1, 9, 4), (1, 9, 3))] + [b.constant(anchors_of(rng, 9), np.float32)]
    outputs = [b.tensor(np.float32, (1, 1), name="detections"), *(b.tensor(np.float32, (1,)) for _ in range(3))]
    add_postprocess(b, tensors, outputs, options)
    with pytest.raises(FormatError, match=f"detections.*{message}"):
        tflite.read(b.finish(tensors[:2], outputs))


@pytest.mark.parametrize("large", [1, 300, 1 << 20, 1 << 40])
def test_flexbuffer(large):
    """Numbers of every width, inside of the map and outside; strings and vectors are left out."""
    values = {"a": large, "bb": -large, "c": 0.5, "d": 1e30, "e": 1, "f": "text", "g": [1, 2], "h": {"x": 1}}
    numbers = {name: value for name, value in values.items() if name in "a bb c d e"}
    assert read_map(bytes(flexbuffers.Dumps(values))) == pytest.approx(numbers)
    b = flexbuffers.Builder()
    with b.Map():
        b.IndirectInt("i", -large)
        b.IndirectUInt("u", large)
        b.IndirectFloat("f", 0.25)
    assert read_map(bytes(b.Finish())) == {"i": -large, "u": large, "f": 0.25}


def test_hostile_flexbuffers():
    sound = bytes(flexbuffers.Dumps(OPTIONS))
    for data in (b"", b"\0\0", bytes(flexbuffers.Dumps([1, 2])), bytes(flexbuffers.Dumps(7)), b"\xff" * 40):
        with pytest.raises(FormatError):
            read_map(data)
    for size in range(len(sound)):
        with contextlib.suppress(FormatError):
            read_map(sound[:size] + sound[-2:])
    rng = np.random.default_rng(0)
    for _ in range(2000):
        data = bytearray(sound)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        with contextlib.suppress(FormatError):
            read_map(bytes(data))
