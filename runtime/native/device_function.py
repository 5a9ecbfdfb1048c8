"""Functions that kernels call: compiled by numba into the family being compiled, always inlined.

`numba.njit` would do for typing, but it compiles every callee to machine code of its own for the host first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core import errors
from numba.core.datamodel import models
from numba.extending import register_model

_compilation: Any = None  # numba compiles under a process-wide lock, so there is one at a time


@contextmanager
def compiling(compilation: Any) -> Iterator[None]:
    """Calls of device functions typed within are compiled into `compilation`."""
    global _compilation
    previous, _compilation = _compilation, compilation
    try:
        yield
    finally:
        _compilation = previous


class DeviceFunction:
    """What `runtime.kernels.abi.inline` makes of a function."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._numba_type_ = DeviceFunctionType(self)


class DeviceFunctionType(types.Callable, types.Opaque):
    """The type of a device function inside numba; one per function."""

    def __init__(self, device: DeviceFunction) -> None:
        self._device = device
        super().__init__(f"DeviceFunction({device.__name__}, {id(device)})")

    def get_call_type(self, context, args, kws):
        if _compilation is None:
            raise errors.TypingError(f"{self._device.__name__} can only be called from a kernel")
        if kws:
            raise errors.TypingError(f"{self._device.__name__}: pass arguments by position")
        # A literal integer or a tuple of them is the same code as any other of its type.
        args = tuple(types.unliteral(arg) for arg in args)
        return _compilation.device_overload(self._device, args)[0]

    def get_call_signatures(self):
        return (), True

    def get_impl_key(self, sig):
        return _compilation.device_overload(self._device, sig.args)[1]


register_model(DeviceFunctionType)(models.OpaqueModel)
