"""DType of xnn.fbs and numpy's dtypes."""

from __future__ import annotations

import numpy as np

from schema.errors import UnsupportedError
from schema.generated.layout import ENUMS

TO_NUMPY: dict[str, np.dtype] = {name: np.dtype(name.lower() if name != "BOOL" else "?") for name in ENUMS["DType"]}
FROM_NUMPY: dict[np.dtype, str] = {dtype: name for name, dtype in TO_NUMPY.items()}


def name_of(dtype: np.dtype) -> str:
    """The DType's name. Raises UnsupportedError for a dtype that files do not know (strings, complex)."""
    try:
        return FROM_NUMPY[np.dtype(dtype)]
    except KeyError:
        raise UnsupportedError(f"dtype {dtype} cannot be stored in an .xnn file") from None
