"""Compiled kernels kept on disk: one file per family, CPU and version of everything they were made from.

File: magic (8 bytes), length of the rest (u64), SHA-256 of the rest (32 bytes), length of the export list (u32), the
exported symbols joined by spaces, the object file. Length and digest tell a truncated or damaged file, which is then
compiled anew. The digest is no signature: the folder is made readable and writable for its owner alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"XNNOBJ1\n"
_HEADER = struct.Struct("<8sQ32s")

_log = logging.getLogger("xnn.runtime")


@dataclass(frozen=True)
class KernelObject:
    """An object file and the symbols it exports."""

    exports: tuple[str, ...]
    code: bytes


def default_cache_folder() -> Path:
    """`$XNN_CACHE`, else `$XDG_CACHE_HOME/xnn/kernels`, else `~/.cache/xnn/kernels`."""
    if folder := os.environ.get("XNN_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "xnn", "kernels")


def pack_object(item: KernelObject) -> bytes:
    """The bytes of a cache file."""
    exports = " ".join(item.exports).encode()
    body = struct.pack("<I", len(exports)) + exports + item.code
    return _HEADER.pack(_MAGIC, len(body), hashlib.sha256(body).digest()) + body


def unpack_object(data: bytes) -> KernelObject | None:
    """The reverse of `pack_object`; None if `data` is truncated, damaged or something else."""
    if len(data) < _HEADER.size + 4:
        return None
    magic, length, digest = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if magic != _MAGIC or length != len(body) or hashlib.sha256(body).digest() != digest:
        return None
    end = 4 + struct.unpack_from("<I", body)[0]
    return KernelObject(tuple(body[4:end].decode().split()), body[end:])


class ObjectCache:
    """A folder of compiled kernels.

    Reading never fails: what is absent or damaged is None. Writing is atomic, so several processes may fill the same
    folder; where it is not possible (read-only or missing home) a warning is logged once and nothing is kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else default_cache_folder()
        self._writable = True

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.xnnobj"

    def load(self, key: str) -> KernelObject | None:
        """The object kept under `key`, or None."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        item = unpack_object(data)
        if item is None:
            _log.info("%s is damaged: compiling its kernels again", self._path(key))
        return item

    def store(self, key: str, item: KernelObject) -> None:
        """Keep `item` under `key`."""
        if not self._writable:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(pack_object(item))
                os.replace(temporary, self._path(key))
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            self._writable = False
            _log.warning(
                "compiled kernels cannot be kept in %s (%s), so every process compiles its own; "
                "set XNN_CACHE to a writable folder",
                self.folder,
                error.strerror,
            )
