"""Compiled kernels kept on disk: one file per family, CPU and version of everything they were made from.

File: magic (8 bytes), length of the rest (u64), SHA-256 of the rest (32 bytes), length of the export list (u32), the
exported symbols joined by spaces, the object file. Length and digest tell a truncated or damaged file, which is then
compiled anew. The digest is no signature: the folder is made readable and writable for its owner alone.

Files of versions and CPUs that are gone are never asked for again; when the folder has become large, those that were
used longest ago are removed.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"XNNOBJ1\n"
_HEADER = struct.Struct("<8sQ32s")

_SUFFIX = ".xnnobj"
_PARTIAL = ".xnn-", ".tmp"  # how files that are being written begin and end

LARGEST = 64 << 20
"""Bytes that the files may take: those of some tens of versions."""
_RENEWED = 24 * 3600  # seconds after which a file that is used is marked as used again
_ABANDONED = 3600  # seconds after which nobody is still writing a file


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
    folder; where it is not possible (read-only or missing home) a warning is logged once and nothing is kept. Files
    that this process has used are not removed by it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else default_cache_folder()
        self._writable = True
        self._used: set[str] = set()  # names of files

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def load(self, key: str) -> KernelObject | None:
        """The object kept under `key`, or None."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        item = unpack_object(data)
        if item is None:
            from absl import logging  # here, where it is seldom needed: it takes as long as loading a small model

            logging.info("%s is damaged: compiling its kernels again", self._path(key))
        else:
            self._mark_used(key)
        return item

    def _mark_used(self, key: str) -> None:
        path = self._path(key)
        self._used.add(path.name)
        with suppress(OSError):  # where nothing can be written, nothing is removed either
            if time.time() - path.stat().st_mtime > _RENEWED:
                os.utime(path)

    def store(self, key: str, item: KernelObject) -> None:
        """Keep `item` under `key`."""
        if not self._writable:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=_PARTIAL[0], suffix=_PARTIAL[1], dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(pack_object(item))
                os.replace(temporary, self._path(key))
            except BaseException:
                os.unlink(temporary)
                raise
            self._used.add(self._path(key).name)
            self._make_room()
        except OSError as error:
            self._writable = False
            from absl import logging

            logging.warning(
                "compiled kernels cannot be kept in %s (%s), so every process compiles its own; "
                "set XNN_CACHE to a writable folder",
                self.folder,
                error.strerror,
            )

    def _make_room(self) -> None:
        """Remove what was used longest ago until the rest is small enough, and what was never finished.

        Other processes may be doing the same, and a file that they wanted is compiled again: nothing here fails.
        """
        total, removable = 0, []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.startswith(_PARTIAL[0]) and entry.name.endswith(_PARTIAL[1]):
                        if time.time() - entry.stat().st_mtime > _ABANDONED:
                            os.unlink(entry.path)
                    elif entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                        size = entry.stat().st_size
                        total += size
                        if entry.name not in self._used:
                            removable.append((entry.stat().st_mtime, size, entry.path))
        for _, size, path in sorted(removable):
            if total <= LARGEST:
                return
            with suppress(OSError):
                os.unlink(path)
            total -= size
