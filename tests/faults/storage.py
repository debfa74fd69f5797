"""A local file system whose changes Python's audit hooks can see, and a process that dies at one.

Everything a driver does to a warehouse becomes a numbered step: opening a file to write it, making
and removing folders and files, renaming, linking. A step can be the last one: the process kills
itself before it (``before``), or when the file has only a first few bytes (``torn``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
from fsspec.implementations.local import LocalFileSystem

# A step's number, the audit event, the path that changes, and the event's arguments.
Seen = Callable[[int, str, str, tuple[Any, ...]], None]

_CHANGES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir")
# A driver is about to ask a catalog for a commit: the path stands for the catalog.
ASKED = "merge.asked"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def visible_file_system() -> pafs.FileSystem:
    """Like pyarrow's own, but written in Python down to the system calls."""
    return pafs.PyFileSystem(Visible(LocalFileSystem(auto_mkdir=False)))


class Visible(pafs.FSSpecHandler):
    """Opens local files in Python."""

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        try:
            return super().get_file_info_selector(selector)
        except NotADirectoryError:
            # The handler looks twice, and another process made the folder in between.
            return super().get_file_info_selector(selector)


class Steps:
    """Counts the changes below ``root`` and calls ``seen`` before each."""

    def __init__(self, root: Path, seen: Seen) -> None:
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
        self._seen(self._count, event, path, arguments)

    def _changed(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITES:
                return None
        elif event in (*_CHANGES, ASKED):
            path = arguments[1] if event in ("os.rename", "os.link") else arguments[0]
        else:
            return None
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return str(text) if str(text).startswith(self._root) else None


def die_at(number: int, *, torn: bool = False, acts: bool = False) -> Seen:
    """A ``seen`` that ends this process with SIGKILL at step ``number``.

    ``torn``: within the file that it writes; ``acts``: as soon as it is done.
    """

    def seen(count: int, event: str, path: str, arguments: tuple[Any, ...]) -> None:
        if count != number:
            return
        if acts:
            _act(event, arguments)
        if torn and event == "open":
            Path(path).write_bytes(b'{"ver')
        os.kill(os.getpid(), signal.SIGKILL)

    return seen


def fail_at(number: int, *, acts: bool) -> Seen:
    """A ``seen`` that makes step ``number`` fail; ``acts``: it is done, but its answer is lost."""

    def seen(count: int, event: str, path: str, arguments: tuple[Any, ...]) -> None:
        del path
        if count != number:
            return
        if not acts:
            raise OSError("the storage failed")
        _act(event, arguments)
        raise ConnectionResetError("the answer was lost")

    return seen


def _act(event: str, arguments: tuple[Any, ...]) -> None:
    # It may have been in vain: a folder that is there already, a commit that is refused.
    with contextlib.suppress(Exception):
        _ACTIONS[event](*arguments)


def _rename(source: Any, target: Any, *_: Any) -> None:
    os.replace(source, target)  # noqa: PTH105


def _link(source: Any, target: Any, *_: Any) -> None:
    os.link(source, target)


def _remove(path: Any, *_: Any) -> None:
    os.unlink(path)  # noqa: PTH108


def _mkdir(path: Any, *_: Any) -> None:
    os.mkdir(path)  # noqa: PTH102


def _ask(path: Any, commit: Callable[[], Any]) -> None:
    del path
    commit()


# What can be done before its answer is lost.
_ACTIONS = {
    ASKED: _ask,
    "os.rename": _rename,
    "os.link": _link,
    "os.remove": _remove,
    "os.mkdir": _mkdir,
}
LOSABLE = frozenset(_ACTIONS)
