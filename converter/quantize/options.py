"""What quantization was asked for, checked in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from converter.quantize import observers
from converter.quantize.weight_bits import weight_bits
from schema.errors import InputError

METHODS = ("none", "int8", "int16x8", "int8-weights", "float16")
CALIBRATED = ("int8", "int16x8")
"""Methods that need calibration data: those with integer activations."""
USING_CALIBRATION = (*CALIBRATED, "int8-weights")
"""Methods that have a use for it."""
REQUANTIZATION = "FP32_ROUND_EVEN"
"""How sums become int8 in the files that are quantized here: a fifth faster than TFLITE_DOUBLE over whole nets, and as
near to float32 (`benchmarks/requantization.py`). What `.tflite` files mean stays TFLITE_DOUBLE."""
DEFAULT_OBSERVER = "percentile"
IO_DTYPES = {"int8": ("float32", "int8"), "int16x8": ("float32", "int16")}
"""What the inputs and outputs of a method's models can be, where there is a choice; the first is the default."""


@dataclass(frozen=True)
class Options:
    """method: "none" leaves the graph as it is; "int8" and "int16x8" (int16 activations) compute with integers and need
    calibration data; "int8-weights" and "float16" store weights as such and compute with float32.

    observer: how the ranges of int8 activations are chosen: "minmax", "percentile" or "entropy".
    io_dtype: of the signature. "int8" ("int16" for "int16x8") declares quantized inputs and outputs; None and "float32"
        keep float32.
    keep_float: patterns of layer names, as of `fnmatch`, that stay as they are; a string is one, or several that commas
        separate. int16: the same for layers whose activations become int16.
    equalize: scale channels across layers, where that helps. bias_correction: shift biases by the mean error, where
        that helps.
    weights: bits of stored weights, as of `weight_bits.weight_bits`; a `WeightBits` afterwards. It comes first, and
        methods keep its integers.
    Raises InputError for values that are none of those, or that the method has no use for.
    """

    method: str = "none"
    observer: str = DEFAULT_OBSERVER
    io_dtype: str | None = None
    keep_float: str | Sequence[str] = ()
    int16: str | Sequence[str] = ()
    equalize: bool = False
    bias_correction: bool = False
    weights: Any = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"quantize is {self.method!r}; it is one of {', '.join(METHODS)}")
        observers.require_known(self.observer)
        self._check_io_dtype()
        for name in ("keep_float", "int16"):
            object.__setattr__(self, name, _patterns(name, getattr(self, name)))
        object.__setattr__(self, "weights", weight_bits(self.weights))
        for name, methods in USERS.items():
            if name == "keep_float" and self.weights:
                continue
            if getattr(self, name) and self.method not in methods:
                raise InputError(f"{name} is for {_named(methods)}, not {self.method!r}")

    @property
    def calibrated(self) -> bool:
        """Whether calibration data is needed."""
        return self.method in CALIBRATED

    @property
    def integer_io(self) -> bool:
        """Whether inputs and outputs are integers."""
        return self.io_dtype not in (None, "float32")

    def check_calibration(self, calibration: Any) -> None:
        """Raise InputError for calibration data that the method has no use for."""
        if calibration is not None and self.method not in USING_CALIBRATION and not self.weights:
            raise InputError(f"calibration data is for {_named(USING_CALIBRATION)}, not {self.method!r}")

    def _check_io_dtype(self) -> None:
        known = sorted({dtype for dtypes in IO_DTYPES.values() for dtype in dtypes})
        if self.io_dtype is not None and self.io_dtype not in known:
            raise InputError(f"io_dtype is {self.io_dtype!r}; it is None or one of {', '.join(known)}")
        if self.integer_io and self.io_dtype not in IO_DTYPES.get(self.method, ()):
            methods = [method for method, dtypes in IO_DTYPES.items() if self.io_dtype in dtypes]
            raise InputError(f"io_dtype {self.io_dtype!r} needs {_named(methods)}")


USERS = {
    "keep_float": (*USING_CALIBRATION, "float16"),
    "int16": ("int8",),
    "equalize": CALIBRATED,
    "bias_correction": CALIBRATED,
}
"""Which methods an option is for."""


def _named(methods: Sequence[str]) -> str:
    return "quantize=" + " or ".join(map(repr, methods))


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(pattern, str) for pattern in given):
        raise InputError(f"{name} is {value!r}: a pattern of layer names or a sequence of them is needed")
    patterns = tuple(pattern.strip() for pattern in given)
    return tuple(pattern for pattern in patterns if pattern)
