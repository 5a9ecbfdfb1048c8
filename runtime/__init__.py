"""The engine: `model = runtime.load("m.xnn"); y = model(x)`. Needs neither TensorFlow nor, once its kernels are
compiled, numba.
"""

from __future__ import annotations

from pathlib import Path

import schema

if Path(schema.__file__ or "").parent.name != "schema" or not hasattr(schema, "XnnError"):
    raise ImportError(
        f"the module 'schema' at {schema.__file__} is not xnn's; uninstall the package 'schema' or use a separate "
        "virtual environment"
    )

from runtime.decoding import decode_lanes
from runtime.session import Model, load
from runtime.signature import TensorInfo
from schema.coding import rans

rans.use(decode_lanes)

__all__ = ["Model", "TensorInfo", "load"]
