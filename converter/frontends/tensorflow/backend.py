"""Which Keras is at work, and that it computes with TensorFlow."""

from __future__ import annotations

import os
import sys
from typing import Any

from schema.errors import UnsupportedError

TENSORFLOW = "tensorflow"


def require_tensorflow() -> None:
    """Raise UnsupportedError if Keras 3 is loaded with, or will be loaded with, another backend."""
    loaded = sys.modules.get("keras")
    if loaded is not None and hasattr(loaded, "backend"):
        backend = loaded.backend.backend()
    else:
        backend = os.environ.get("KERAS_BACKEND", TENSORFLOW)
    if backend != TENSORFLOW:
        raise UnsupportedError(
            f"Keras runs on the {backend} backend; xnn reads models through TensorFlow: set KERAS_BACKEND=tensorflow "
            "before Keras is imported"
        )


def keras_3() -> Any:
    """The keras module. Raises UnsupportedError for another backend or for Keras 2."""
    require_tensorflow()
    import keras

    require_tensorflow()
    if not keras.__version__.startswith("3."):
        raise UnsupportedError(
            f"keras {keras.__version__} is installed; this model needs Keras 3: pip install 'keras>=3'"
        )
    return keras


def tf_keras() -> Any:
    """The tf_keras module. Raises UnsupportedError where it is not installed."""
    try:
        import tf_keras
    except ImportError:
        raise UnsupportedError("Keras 2 wrote this model, which needs tf_keras: pip install tf_keras") from None
    return tf_keras


def module_of(model: Any) -> str | None:
    """ "keras" or "tf_keras" for a model object of theirs, None for anything else. Imports neither."""
    for base in type(model).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("keras", "tf_keras") and base.__name__ == "Model":
            return root
    return None
