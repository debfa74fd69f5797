"""A local file system that counts what this process asks of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow.fs as pafs
from fsspec.implementations.local import LocalFileSystem

_ASKED = (
    "copy_file",
    "create_dir",
    "delete_dir",
    "delete_file",
    "get_file_info",
    "get_file_info_selector",
    "move",
    "open_input_file",
    "open_input_stream",
    "open_output_stream",
)
# Those of this process: tasks of Spark have processes of their own.
_requests: Counter[str] = Counter()


class Counting(pafs.FSSpecHandler):
    """Local files by Python, counted in ``_requests``."""


def _counted(name: str) -> Any:
    real = getattr(pafs.FSSpecHandler, name)

    def counting(self: Counting, *arguments: Any, **more: Any) -> Any:
        _requests[name] += 1
        return real(self, *arguments, **more)

    return counting


for _name in _ASKED:
    setattr(Counting, _name, _counted(_name))


class CountedLocalFileSystem(pafs.PyFileSystem):
    """What stands for pyarrow's own."""

    def __init__(self) -> None:
        super().__init__(Counting(LocalFileSystem(auto_mkdir=False)))


@contextmanager
def counted_requests() -> Iterator[Counter[str]]:
    """Local file systems that are opened in the block count; yields how often which was asked."""
    _requests.clear()
    with mock.patch.object(pafs, "LocalFileSystem", CountedLocalFileSystem):
        yield _requests
