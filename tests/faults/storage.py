"""A local file system whose changes Python's audit hooks can see, and a process that dies at one.

Everything a driver does to a warehouse becomes a numbered step: opening a file to write it, making
and removing folders and files, renaming, linking. A step can be the last one: the process kills
itself before it (``before``), or when the file has only a first few bytes (``torn``).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
from fsspec.implementations.local import LocalFileSystem

_CHANGES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def visible_file_system() -> pafs.FileSystem:
    """Like pyarrow's own, but written in Python down to the system calls."""
    return pafs.PyFileSystem(pafs.FSSpecHandler(LocalFileSystem(auto_mkdir=False)))


class Steps:
    """Counts the changes below ``root`` and calls ``seen(number, name)`` before each."""

    def __init__(self, root: Path, seen: Callable[[int, str, str], None]) -> None:
        self._root = str(root)
        self._seen = seen
        self._count = 0

    def watch(self) -> None:
        """From now on; there is no way back, hence only in a process made for it."""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        path = self._changed(event, arguments)
        if path is None:
            return
        self._count += 1
        self._seen(self._count, event, path)

    def _changed(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITES:
                return None
        elif event in _CHANGES:
            path = arguments[1] if event in ("os.rename", "os.link") else arguments[0]
        else:
            return None
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return str(text) if str(text).startswith(self._root) else None


def die_at(number: int, *, torn: bool) -> Callable[[int, str, str], None]:
    """A ``seen`` that ends this process with SIGKILL at step ``number``."""

    def seen(count: int, event: str, path: str) -> None:
        if count != number:
            return
        if torn and event == "open":
            Path(path).write_bytes(b'{"ver')
        os.kill(os.getpid(), signal.SIGKILL)

    return seen
