"""The files below a table's directory that can be orphans. Runs on executors, too.

Only places where this format stores files are looked at; external paths, which tables may share,
are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, get_args

import pyarrow.fs as pafs

from spark_jobs.contract.paimon_files import Kind
from spark_jobs.storage.parallel import in_parallel

FileKind = Literal["data", "index", "manifest"]
_METADATA: Final[Mapping[str, FileKind]] = {
    "manifest": "manifest",
    "statistics": "manifest",
    "index": "index",
}
_OTHERS: Final = ("changelog", *get_args(Kind))
_BUCKET: Final = re.compile(r"bucket-(-?[0-9]+|postpone)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StoredFile(NamedTuple):
    """``size`` is in bytes; ``stored``, when it was, in microseconds since 1970."""

    path: str
    kind: FileKind
    size: int
    stored: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def stored_kind(table_path: str, path: str) -> FileKind | None:
    """What is stored at a place in a table's directory; None where it is nothing to remove."""
    folders = path.removeprefix(f"{table_path}/").split("/")[:-1]
    if not folders or folders[0] in _OTHERS:
        return None
    if len(folders) == 1 and folders[0] in _METADATA:
        return _METADATA[folders[0]]
    return "data" if _BUCKET.fullmatch(folders[-1]) else None


def stored_files(filesystem: pafs.FileSystem, table_path: str, folder: str) -> Iterator[StoredFile]:
    """The files below ``folder``, which is the table's directory or in it, that can be orphans."""
    selector = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
    for info in filesystem.get_file_info(selector):
        if info.type != pafs.FileType.File or info.mtime_ns is None:
            continue
        kind = stored_kind(table_path, info.path)
        if kind is not None:
            yield StoredFile(info.path, kind, info.size or 0, info.mtime_ns // 1000)


def folders_of(filesystem: pafs.FileSystem, table_path: str, levels: int, enough: int) -> list[str]:
    """Folders with all files of a table that can be orphans, to be listed apart from each other.

    ``levels`` of partitions are opened until there are ``enough``.
    """
    found = [each for each in _subfolders(filesystem, table_path) if each not in _OTHERS]
    folders = [f"{table_path}/{name}" for name in found]
    for _ in range(levels):
        if len(folders) >= enough:
            break
        opened = in_parallel(lambda folder: _opened(filesystem, folder), folders)
        folders = [each for inside in opened for each in inside]
    return folders


def microseconds(moment: datetime) -> int:
    """A moment as ``StoredFile`` has it."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def orphans_among(
    files: Iterable[StoredFile], needed: Container[str], before: int
) -> list[StoredFile]:
    """The files stored before a moment whose names are not among those that are needed.

    Names are unique; a folder may be spelled otherwise than it would be here.
    """
    return [each for each in files if each.stored < before and each.name not in needed]


def _opened(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    """A partition's folders; what may hold files that are looked for stays as it is."""
    name = folder.rpartition("/")[2]
    if name in _METADATA or _BUCKET.fullmatch(name):
        return [folder]
    return [f"{folder}/{each}" for each in _subfolders(filesystem, folder)]


def _subfolders(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    selector = pafs.FileSelector(folder, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    return sorted(info.base_name for info in infos if info.type == pafs.FileType.Directory)
