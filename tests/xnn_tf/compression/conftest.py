"""A small problem that a small model solves, for both Kerases."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

CLASSES = 4


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest) -> ModuleType:
    """Keras 3 and tf_keras, seeded."""
    module = importlib.import_module(request.param)
    module.utils.set_random_seed(20)
    return module


@pytest.fixture(scope="session")
def problem() -> tuple:
    """((x, y) to train, (x, y) to validate): four clouds in 16 dimensions, 512 and 256 points."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(CLASSES, 16))
    labels = rng.integers(0, CLASSES, 768)
    points = (centres[labels] + 0.9 * rng.normal(size=(768, 16))).astype(np.float32)
    return (points[:512], labels[:512]), (points[512:], labels[512:])


@pytest.fixture
def classifier() -> Callable[[ModuleType], Any]:
    """Makes 16 -> 96 -> 48 -> 4, not compiled."""

    def build(keras: ModuleType) -> Any:
        layers = [
            keras.layers.Input((16,), name="point"),
            keras.layers.Dense(96, "relu", name="first"),
            keras.layers.Dense(48, "relu", name="second"),
            keras.layers.Dense(CLASSES, name="out"),
        ]
        return keras.Sequential(layers, name="clouds")

    return build


@pytest.fixture
def trained(keras: ModuleType, classifier: Callable[[ModuleType], Any], problem: tuple) -> Any:
    """The classifier, trained, of logits."""
    model = classifier(keras)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    model.fit(*problem[0], batch_size=64, epochs=8, verbose=0)
    return model
