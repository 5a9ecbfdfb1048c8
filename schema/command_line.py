"""What all command lines share: an error is one line on stderr and exit code 2, never a traceback; output files
appear whole or not at all.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from schema.errors import XnnError

USAGE_ERROR = 2


def guarded(main: Callable[[], int | None]) -> int:
    """Run `main` and return the exit code. XnnErrors and system errors become one message."""
    try:
        return main() or 0
    except XnnError as error:
        message = str(error)
    except BrokenPipeError:  # the reader of our output, `head` say, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except MemoryError:
        message = "out of memory"
    except KeyboardInterrupt:
        return 130
    print(f"error: {message}", file=sys.stderr)
    return USAGE_ERROR


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` only once it is complete."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
