"""The TensorFlow front end: SavedModels, .keras and .h5 files, and Keras model objects (Keras 3 and tf_keras) to a
schema.Graph.

All become one `Program` (functions, constants, variables) and are read by `graph_reader`. TensorFlow is imported here
and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from converter.frontends.tensorflow.backend import module_of, require_tensorflow
from converter.frontends.tensorflow.quiet import import_tensorflow
from schema.errors import InputError
from schema.graph import Graph


def read(source: Any, signature: str | None = None, custom_objects: Mapping[str, Any] | str | None = None) -> Graph:
    """The graph of a SavedModel folder, a .keras or .h5 file, or a Keras model object.

    custom_objects: classes and functions by name, or the module that defines them; for .keras and .h5 files.
    Raises XnnErrors that name the source and say what to do.
    """
    import_tensorflow()
    from converter.frontends.tensorflow import graph_reader

    return graph_reader.read(_program(source, signature, custom_objects))


def _program(source: Any, signature: str | None, custom_objects: Mapping[str, Any] | str | None) -> Any:
    from converter.frontends.tensorflow import keras_files, keras_models, saved_model

    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        require_tensorflow()
        if path.is_dir():
            return saved_model.load(path, signature)
        if isinstance(custom_objects, str):
            custom_objects = keras_files.objects_of(custom_objects)
        source = keras_files.load(path, custom_objects)
    if module_of(source) is None:
        raise InputError(
            f"a {type(source).__module__}.{type(source).__name__} cannot be converted: give a Keras model, or the path "
            "of a SavedModel folder, a .keras or an .h5 file"
        )
    return keras_models.trace(source, signature)
