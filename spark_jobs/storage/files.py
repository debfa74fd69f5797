"""Creates, copies, lists, replaces and removes files and folders on any storage.

Several requests go at a time. Notes that tries of an operation leave for later ones are small JSON
documents. Used by executors, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import pyarrow.fs as pafs

from spark_jobs.contract.operation_files import unfinished_name
from spark_jobs.errors import CatalogError, DataError, ErrorCode, excerpt

# In bytes: of a name in a file system or in HDFS, and of a whole key in an object store.
_LONGEST_NAME: Final = 255
_LONGEST_KEY: Final = 1024
# How often a folder is removed that others change meanwhile.
_TRIES: Final = 3
# Characters of a name in an error.
_SHOWN: Final = 200
_CHUNK: Final = 8 * 1024 * 1024
PARALLEL: Final = 16
S = TypeVar("S")
T = TypeVar("T")
# In bytes.
_LONGEST: Final = 65_536
_T = TypeVar("_T")


def replace_file(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    """Create or replace a file atomically: readers see the whole content or none of it.

    Raises:
        OSError: the storage refused.
    """
    if not has_folders(filesystem):
        # The object appears when the stream is closed.
        _write(filesystem, path, content)
        return
    temporary = temporary_path(path)
    make_folder(filesystem, path.rpartition("/")[0])
    try:
        _write(filesystem, temporary, content)
        filesystem.move(temporary, path)
    except OSError:
        with suppress(OSError):  # half of it on a full disk
            filesystem.delete_file(temporary)
        raise


def read_file(filesystem: pafs.FileSystem, path: str, most: int | None = None) -> bytes:
    """The content of a small file that somebody may remove meanwhile, or its first ``most`` bytes.

    Of one that goes after it was opened, pyarrow says that an object store failed, in one of
    several ways: so the file is looked for once more.

    Raises:
        FileNotFoundError: there is no such file, or no longer.
        OSError: the storage refused.
    """
    try:
        with filesystem.open_input_stream(path) as stream:
            content: bytes = stream.read(most)
            return content
    except FileNotFoundError:
        raise
    except OSError as error:
        if filesystem.get_file_info(path).type.name == "NotFound":
            raise FileNotFoundError(path) from error
        raise


def temporary_path(path: str) -> str:
    """The path of a hidden file beside ``path``, with a name that no other job uses."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{unfinished_name(name)}"


def _write(filesystem: pafs.FileSystem, path: str, content: bytes | Iterable[bytes]) -> None:
    with filesystem.open_output_stream(path) as stream:
        for piece in [content] if isinstance(content, bytes) else content:
            stream.write(piece)


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Create a folder and its parents, if the storage has folders.

    Raises:
        DataError: VALUE_NOT_STORABLE: a name is too long, as that of a partition with a long value.
        OSError: the storage refused.
    """
    if not has_folders(filesystem):
        _require_short(path, _LONGEST_KEY, path)
        return
    for name in path.split("/"):
        _require_short(name, _LONGEST_NAME, path)
    filesystem.create_dir(path, recursive=True)


def _require_short(name: str, longest: int, path: str) -> None:
    size = len(name.encode(errors="surrogateescape"))
    if size > longest:
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"A name has {size:,} bytes, of which the storage takes {longest:,}: "
            f"{excerpt(name, _SHOWN)}, in {excerpt(path, 2 * _SHOWN)}. Names of partitions hold "
            "their values.",
            "Partition by a column with shorter values, or shorten them.",
        )


def remove_file(filesystem: pafs.FileSystem, path: str) -> None:
    """Remove a file, if it exists."""
    with suppress(FileNotFoundError):
        filesystem.delete_file(path)


def remove_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Remove a folder and everything in it, if it exists.

    Raises:
        OSError: the storage refused.
    """
    # A late task adds or removes files meanwhile, or an object store on a file system refuses to
    # remove the folder's name before its files.
    for number in range(_TRIES):
        try:
            filesystem.delete_dir(path)
        except OSError:
            if filesystem.get_file_info(path).type.name == "NotFound":
                return
            if number == _TRIES - 1:
                raise
        else:
            return


def has_folders(filesystem: pafs.FileSystem) -> bool:
    """False for object stores, where a folder is only a prefix of names."""
    return str(filesystem.type_name) != "s3"


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


def copy_files(filesystem: pafs.FileSystem, pairs: Sequence[tuple[str, str]]) -> None:
    """Copy files to new paths, several at a time; the storage does it itself where it can.

    Raises:
        FileNotFoundError: a file is not there; its path is ``filename``.
        OSError: the storage refused.
    """
    in_parallel(lambda pair: _copy(filesystem, *pair), pairs)


def _copy(filesystem: pafs.FileSystem, source: str, target: str) -> None:
    if filesystem.get_file_info(source).type != pafs.FileType.File:
        raise FileNotFoundError(2, "there is no such file", source)
    make_folder(filesystem, target.rpartition("/")[0])
    try:
        if filesystem.type_name == "s3":
            filesystem.copy_file(source, target)
        else:
            _streamed(filesystem, source, target)
    except BaseException:
        remove_file(filesystem, target)
        raise


def _streamed(filesystem: pafs.FileSystem, source: str, target: str) -> None:
    with (
        filesystem.open_input_stream(source) as read,
        filesystem.open_output_stream(target) as written,
    ):
        while chunk := read.read(_CHUNK):
            written.write(chunk)


def in_parallel(function: Callable[[S], T], values: Sequence[S]) -> list[T]:
    """The function's results in the order of the values; the first failure is raised."""
    if len(values) < 2:
        return [function(value) for value in values]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(function, values))


def read_note(
    filesystem: pafs.FileSystem,
    path: str,
    parse: Callable[[Any], _T],
    remedy: str,
) -> _T | None:
    """What ``parse`` makes of the note at ``path``; None if there is none.

    Raises:
        CatalogError: METADATA_UNREADABLE, with ``remedy``: the file is no note.
        OSError: the storage refused.
    """
    try:
        return parse(json.loads(read_file(filesystem, path, _LONGEST)))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE, f"The note {path} is not readable: {error}", remedy
        ) from error
