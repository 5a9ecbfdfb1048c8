"""Opens .keras and .h5 files with the Keras that wrote them: Keras 3, or tf_keras for what Keras 2 wrote."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from converter.frontends.tensorflow.backend import keras_3, tf_keras
from schema.errors import ConversionError, FormatError, InputError

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
CustomObjects = Mapping[str, Any]
UNKNOWN = (
    "Unknown layer",
    "Unknown object",
    "Unknown activation",
    "Could not locate",
    "not registered",
    "custom_objects",
    "'str' object is not callable",  # what tf_keras makes of a .keras file's unknown layer
)
"""What Keras says of classes and functions that it does not know."""
TFMOT_WRAPPERS = ("PruneLowMagnitude", "ClusterWeights", "Quantize")
"""Layers of TensorFlow's model optimization toolkit, whose files are read without being told."""

OWN_LAYERS = "xnn_tf>"
"""What names of layers of quantize-aware models begin with; importing their module makes them known. By name, since the
converter does without that package."""


def load(path: Path, custom_objects: CustomObjects | None = None) -> Any:
    """The model object.

    Raises FormatError for a damaged or foreign file, ConversionError for one that holds no whole model or needs
    custom objects that were not given.
    """
    with open(path, "rb") as file:
        magic = file.read(8)
    if magic == HDF5_MAGIC:
        version = _hdf5_version(path)
    elif magic[:2] == b"PK":
        version = _archive_version(path)
    else:
        raise FormatError(f"{path} is no Keras model: neither a .keras archive nor an HDF5 file")
    keras = tf_keras() if version.startswith(("1.", "2.")) else keras_3()
    try:
        return _load(keras, path, custom_objects)
    except Exception as error:  # Keras raises whatever its layers do
        raise _explained(path, keras, error) from None


def _load(keras: Any, path: Path, custom_objects: CustomObjects | None) -> Any:
    if OWN_LAYERS in _config(path):
        importlib.import_module(f"xnn_tf.quantization.{keras.__name__}_wrapper")
    load_model = partial(keras.models.load_model, path, custom_objects=dict(custom_objects or {}), compile=False)
    try:
        return load_model()
    except (TypeError, ValueError) as error:
        if not any(wrapper in str(error) for wrapper in TFMOT_WRAPPERS):
            raise
    import tensorflow_model_optimization as tfmot

    clustering, pruning, quantizing = (
        getattr(tfmot, name).keras for name in ("clustering", "sparsity", "quantization")
    )
    with clustering.cluster_scope(), pruning.prune_scope(), quantizing.quantize_scope():
        return load_model()


def objects_of(module: str) -> dict[str, Any]:
    """The classes and functions that a module defines, by name: "package.module" or the path of a .py file.

    Raises InputError for a module that cannot be imported.
    """
    try:
        loaded = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    except Exception as error:  # a module may fail in any way
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"--custom-objects {module} cannot be imported ({reason}); give a module or a .py file"
        ) from None
    members = {name: value for name, value in vars(loaded).items() if not name.startswith("_")}
    return {name: value for name, value in members.items() if inspect.isclass(value) or inspect.isfunction(value)}


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _config(path: Path) -> str:
    """The layers of a file, as JSON."""
    import h5py

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return archive.read("config.json").decode(errors="replace")
    with h5py.File(path, "r") as file:
        config = file.attrs["model_config"]
    return config.decode(errors="replace") if isinstance(config, bytes) else str(config)


def _hdf5_version(path: Path) -> str:
    """Which Keras wrote the file. Raises FormatError, or ConversionError for weights alone."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if "model_config" not in file.attrs:
                raise ConversionError(
                    f"{path} holds weights, not a model: build the model in Python, call load_weights, and convert "
                    "the object"
                )
            version = file.attrs.get("keras_version", "2.")
    except OSError as error:
        raise FormatError(f"{path} is damaged: {error}") from None
    return version.decode() if isinstance(version, bytes) else str(version)


def _archive_version(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            if "config.json" not in archive.namelist():
                raise FormatError(f"{path} is no Keras model: an archive without config.json")
            if "metadata.json" not in archive.namelist():
                return "3."
            return str(json.loads(archive.read("metadata.json")).get("keras_version", "3."))
    except (zipfile.BadZipFile, OSError, EOFError, ValueError) as error:
        raise FormatError(f"{path} is damaged: {error}") from None


def _explained(path: Path, keras: Any, error: Exception) -> Exception:
    """Keras's error as one of ours, with a remedy."""
    text = " ".join(str(error).split())
    short = text if len(text) <= 300 else f"{text[:300]}…"
    if "ambda" in text and ("safe_mode" in text or "unsafe" in text.lower()):
        return ConversionError(
            f"{path} holds a Lambda layer, and running code from a file is unsafe: load it in Python with "
            "safe_mode=False if you trust it, and convert the object"
        )
    if any(words in text for words in UNKNOWN):
        return ConversionError(
            f"{path} needs classes or functions of yours ({short}); name the module that defines them with "
            "--custom-objects (in Python: custom_objects={'Name': Class})"
        )
    if isinstance(error, (OSError, KeyError, EOFError, zipfile.BadZipFile, json.JSONDecodeError)):
        return FormatError(f"{path} is damaged: {short}")
    return ConversionError(f"{path} cannot be loaded by {keras.__name__} {keras.__version__}: {short}")
