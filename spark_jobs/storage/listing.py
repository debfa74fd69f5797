"""Lists what a folder itself holds, not what symbolic links lead to. Used by executors too."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow.fs as pafs


def own_files(
    filesystem: pafs.FileSystem, folder: str, *, recursive: bool
) -> Iterator[pafs.FileInfo]:
    """The files and folders in ``folder``, if it exists, and if ``recursive`` in those folders.

    Only folders of this machine have links: they are neither listed nor followed, since what they
    lead to may belong to others. Times are in nanoseconds.

    Raises:
        OSError: the storage refused.
    """
    if str(filesystem.type_name) != "local":
        selector = pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)
        yield from filesystem.get_file_info(selector)
        return
    waiting = [folder]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                yield pafs.FileInfo(entry.path, pafs.FileType.Directory)
                waiting += [entry.path] if recursive else []
            elif entry.is_file(follow_symlinks=False) and (found := _status(entry)):
                size, time = found.st_size, found.st_mtime_ns
                yield pafs.FileInfo(entry.path, pafs.FileType.File, mtime_ns=time, size=size)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None if another process has removed the file."""
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
