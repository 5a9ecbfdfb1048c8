"""What can go wrong between a kernel's source and its machine code."""

from __future__ import annotations

from schema.errors import XnnError


class KernelCompileError(XnnError):
    """A kernel family cannot become a self-contained object: its source is at fault, or the compiler is missing."""
