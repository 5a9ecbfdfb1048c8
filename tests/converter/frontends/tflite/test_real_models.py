"""Real files: the engine's outputs are LiteRT's reference kernels', to the bit where they are integers."""

import numpy as np
import pytest

import converter
import runtime
from converter.integers import computes_integers
from tests.support.litert_files import Session, relative_difference

INTEGER = """mltk/anomaly_detection mltk/autoencoder_example mltk/image_classification mltk/keyword_spotting
    mltk/rock_paper_scissors mltk/tflite_micro_speech mltk/visual_wake_words""".split()
FLOAT = """mltk/autoencoder_example.float32 mltk/rock_paper_scissors.float32 basic_pitch/nmp
    ssd_mobilenetv2_oidv4/object_detection_ssd_mobilenetv2_oidv4_fp16""".split()


def outputs(model, arrays):
    results = model(*arrays)
    return list(results.values()) if isinstance(results, dict) else [results]


@pytest.mark.parametrize("name", INTEGER)
def test_integers(shared, rng, name):
    path = shared / "models" / f"{name}.tflite"
    converted = converter.convert(path)
    assert computes_integers(converted.report.graph)
    assert len(converted.bytes) < path.stat().st_size
    model, reference = runtime.load(converted.bytes), Session(path.read_bytes())
    seen = set()
    for _ in range(6):
        arrays = reference.draw(rng)
        expected = reference.run(arrays)
        seen.add(expected[0].tobytes())
        for ours, theirs in zip(outputs(model, arrays), expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert len(seen) > 1


@pytest.mark.parametrize("name", FLOAT)
def test_floats(shared, rng, name):
    """Within 1e-5, or three times the difference between LiteRT's own two sets of kernels."""
    path = shared / "models" / f"{name}.tflite"
    converted = converter.convert(path)
    assert len(converted.bytes) < path.stat().st_size
    content = path.read_bytes()
    model, reference, usual = runtime.load(converted.bytes), Session(content), Session(content, "BUILTIN")
    arrays = [x / 10 for x in reference.draw(rng)]
    expected = reference.run(arrays)
    ours = outputs(model, arrays)
    assert [(a.dtype, a.shape) for a in ours] == [(a.dtype, a.shape) for a in expected]
    tolerance = max(1e-5, 3 * relative_difference(usual.run(arrays), expected))
    assert relative_difference(ours, expected) <= tolerance
    assert relative_difference(outputs(model, [x * x for x in arrays]), ours) > 10 * tolerance


def test_names_and_open_sizes(shared, rng):
    result = converter.convert(shared / "models/mltk/rock_paper_scissors.tflite")
    model = runtime.load(result.bytes)
    assert [(info.name, info.shape, info.dtype) for info in model.inputs] == [
        ("conv2d_input", (None, 84, 84, 1), np.float32)
    ]
    assert [info.name for info in model.outputs] == ["dense_1"]
    x = rng.normal(size=(3, 84, 84, 1)).astype(np.float32)
    np.testing.assert_array_equal(model(x)[1:2], model(x[1:2]))
    assert [layer.name for layer in result.report.layers][1:3] == [
        "sequential/activation/Relu",
        "sequential/max_pooling2d/MaxPool",
    ]
