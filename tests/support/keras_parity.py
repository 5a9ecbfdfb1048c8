"""A Keras model and what becomes of it, compared on the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import converter
import runtime
from converter.frontends import tensorflow
from schema import evaluate


def outputs(model: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What Keras computes for inference, as a flat list in declared order, in float32 where it is some float."""
    result = model(arrays[0] if len(arrays) == 1 else list(arrays), training=False)
    if isinstance(result, dict):
        result = list(result.values())
    flat = result if isinstance(result, (list, tuple)) else [result]
    arrays = [np.asarray(y) for y in flat]
    return [y.astype(np.float32) if y.dtype.kind not in "iub" else y for y in arrays]


def randomize(model: Any, rng: np.random.Generator) -> None:
    """Weights that are all different from what layers begin with: biases not 0, variances not 1 but positive."""
    model.set_weights(
        [w if w.dtype.kind in "iub" else rng.uniform(0.1, 0.9, w.shape).astype(w.dtype) for w in model.get_weights()]
    )


def check(model: Any, *arrays: np.ndarray, tolerance: float = 1e-5) -> converter.Result:
    """The front end's graph by references, and the converted file on the engine, give what Keras gives.

    tolerance: of the largest magnitude. Samples 0 and 1 of the first output must differ by far more, so that the
    check can fail.
    """
    expected = outputs(model, arrays)
    first = expected[0].astype(np.float64)
    scale = max(float(np.abs(first).max()), 1e-3)
    assert np.abs(first[0] - first[1]).max() > 100 * tolerance * scale, "the samples differ too little to tell"
    compare(evaluate.run(tensorflow.read(model), arrays), expected, tolerance)
    result = converter.convert(model)
    answer = runtime.load(result.bytes)(*arrays)
    compare(list(answer.values()) if isinstance(answer, dict) else [answer], expected, tolerance)
    return result


def compare(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        if theirs.dtype.kind in "iub":
            np.testing.assert_array_equal(ours, theirs)
            continue
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(float(np.abs(theirs).max()), 1e-3))
