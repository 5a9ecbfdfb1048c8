"""Every error that xnn raises on purpose: one family, so that callers can catch `XnnError` and command lines can
print it.
"""


class XnnError(Exception):
    """Base of all xnn errors. The message names the layer, tensor or file and says what to do."""


class FormatError(XnnError, ValueError):
    """A file is not what it claims to be: truncated, corrupt, hostile, or of another format."""


class UnsupportedError(XnnError, NotImplementedError):
    """An op, dtype, layer or backend that xnn does not handle."""


class ShapeError(XnnError, ValueError):
    """Shapes or dtypes that an op cannot take together."""


class ConversionError(XnnError):
    """A source model that cannot become an `.xnn` file."""


class LostStructureError(ConversionError):
    """A written file that has lost zeros or clusters which the source's kernels have. The message names the layer."""


class CalibrationError(XnnError, ValueError):
    """Calibration data of the wrong name, shape or dtype, or not finite."""


class InputError(XnnError, ValueError):
    """An argument or an input array of the wrong name, shape, dtype or value."""


class ExecutionError(XnnError, RuntimeError):
    """A kernel stopped with a failure while the model ran."""


class MemoryLimitError(ExecutionError):
    """A model asks for more memory than it may have. The message names the layer with the largest tensor."""
