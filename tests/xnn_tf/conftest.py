"""Fixtures for both Kerases: one small problem, and models that show what each update left in their kernels."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest) -> ModuleType:
    """Keras 3 and tf_keras, seeded."""
    module = importlib.import_module(request.param)
    module.utils.set_random_seed(20)
    return module


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A regression problem: 64 × 6 -> 64 × 2."""
    x = rng.normal(size=(64, 6)).astype(np.float32)
    return x, np.tanh(x @ rng.normal(size=(6, 2))).astype(np.float32)


@pytest.fixture
def dense_model(keras: ModuleType) -> Any:
    """Builds a compiled two-layer model: `dense_model(optimizer, **compile_arguments)`."""

    def build(optimizer: Any = "adam", **compile_arguments: Any) -> Any:
        model = keras.Sequential(
            [keras.layers.Input((6,)), keras.layers.Dense(10, "relu", name="hidden"), keras.layers.Dense(2, name="out")]
        )
        model.compile(optimizer, "mse", **compile_arguments)
        return model

    return build


@pytest.fixture
def zeros() -> Any:
    """Counts the zeros of a layer's kernel: `zeros(layer)`."""

    def count(layer: Any, weight: str = "kernel") -> int:
        return int(np.sum(np.asarray(getattr(layer, weight).numpy(), np.float32) == 0))

    return count
