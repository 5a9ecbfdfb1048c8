"""TensorFlow imported without the lines that its C++ side prints about CPUs and GPUs before any log level is heeded."""

from __future__ import annotations

import os
import sys
import tempfile

from schema.errors import UnsupportedError


def import_tensorflow() -> None:
    """Import it if it is not imported yet. Raises UnsupportedError where it is not installed."""
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except ImportError as error:
            raise UnsupportedError(f"reading Keras models needs TensorFlow ({error}): pip install 'xnn[tf]'") from None
        finally:
            os.dup2(kept, 2)
            os.close(kept)
