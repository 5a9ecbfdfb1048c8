"""The class QuantizeWrapper of Keras 3 and that of tf_keras, each made when its Keras is there."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any

PACKAGE = "xnn_tf"
KERAS = ("keras", "tf_keras")


@cache
def wrapper_class(keras: str) -> Any:
    """The class of "keras" or "tf_keras". Models that hold it can be loaded from then on."""
    return importlib.import_module(f"xnn_tf.quantization.{keras}_wrapper").QuantizeWrapper


def register_layers() -> None:
    """Make the Kerases that are imported know QuantizeWrapper, so that `load_model` reads quantize-aware models.

    `import xnn_tf` does this for those that were imported before it, quantize_aware for the model's.
    """
    for keras in KERAS:
        if keras in sys.modules and "tensorflow" in sys.modules:
            wrapper_class(keras)
