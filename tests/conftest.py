"""What every test shares: where real models and data are, quiet logs, fixed seeds. It imports no TensorFlow."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support import inventory

REPOSITORY = Path(__file__).resolve().parents[1]
SEED = 20

# Read when TensorFlow is first imported, by a test or by a process that a test starts.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

# Without deadlines, since a first call may compile a kernel. `nightly` draws more cases and new ones each time.
settings.register_profile(
    "ci", max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("brief", parent=settings.get_profile("ci"), max_examples=4)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_sessionfinish() -> None:
    inventory.save()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seeds Python, numpy and the Keras versions that are already imported, before each test."""
    random.seed(SEED)
    np.random.seed(SEED)
    for name in ("keras", "tf_keras"):
        if (keras := sys.modules.get(name)) is not None:
            keras.utils.set_random_seed(SEED)


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator that starts equal in every test."""
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real models and data: `$XNN_SHARED`, else `../shared` beside the checkout. Skips where absent."""
    folder = Path(os.environ.get("XNN_SHARED") or REPOSITORY.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no folder of models and data at {folder} (set XNN_SHARED)")
    return folder


@pytest.fixture(scope="session")
def cifar10() -> Iterator[np.lib.npyio.NpzFile]:
    """CIFAR-10: `x_train`, `x_test` uint8 (N, 32, 32, 3), `y_train`, `y_test` uint8 (N,). Skips where absent.

    Looked for at `$XNN_DATA/cifar10.npz`, else `~/.cache/xnn/cifar10.npz`.
    """
    path = Path(os.environ.get("XNN_DATA") or "~/.cache/xnn").expanduser() / "cifar10.npz"
    if not path.is_file():
        pytest.skip(f"no CIFAR-10 at {path} (fetch it with: python ../shared/get-cifar10 {path})")
    with np.load(path) as arrays:
        yield arrays
