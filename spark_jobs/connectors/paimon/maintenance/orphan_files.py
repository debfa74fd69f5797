"""Which stored files of a Paimon table can be orphans, and which nothing needs.

Considers only places where Paimon stores files, and ignores external paths, which tables may share,
and symbolic links.

Runs on executors, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, get_args

import pyarrow.fs as pafs

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.paimon.format.manifest_entries import (
    ManifestFiles,
    NamedFile,
    files_of_manifest,
    live_files,
    named_file,
)
from spark_jobs.connectors.shared.maintenance.orphan_tasks import Names, StoredFile
from spark_jobs.connectors.shared.maintenance.removal_notes import FileKind
from spark_jobs.formats.avro.records import records
from spark_jobs.formats.paimon.metadata_files import Kind
from spark_jobs.storage.files import in_parallel, own_files

_METADATA: Final[Mapping[str, FileKind]] = {
    "manifest": "manifest",
    "statistics": "manifest",
    "index": "index",
}
_OTHERS: Final = get_args(Kind)
_BUCKET: Final = re.compile(r"bucket-(-?[0-9]+|postpone)")


def stored_kind(table_path: str, path: str) -> FileKind | None:
    """The kind of a file at this path in a table's directory; None if it can never be an orphan."""
    folders = path.removeprefix(f"{table_path}/").split("/")[:-1]
    if not folders or folders[0] in _OTHERS:
        return None
    if len(folders) == 1 and folders[0] in _METADATA:
        return _METADATA[folders[0]]
    return "data" if _BUCKET.fullmatch(folders[-1]) else None


def stored_files(
    filesystem: pafs.FileSystem, table_path: str, folder: str, is_deep: bool
) -> Iterator[StoredFile]:
    """The files that can be orphans in ``folder``, the table's directory or a folder in it.

    ``is_deep``: and in the folders below.
    """
    for info in own_files(filesystem, folder, recursive=is_deep):
        if info.type != pafs.FileType.File or info.mtime_ns is None:
            continue
        kind = stored_kind(table_path, info.path)
        if kind is not None:
            yield StoredFile(info.path, kind, info.size or 0, info.mtime_ns // 1000)


def folders_of(
    filesystem: pafs.FileSystem, table_path: str, levels: int, enough: int
) -> list[tuple[str, bool]]:
    """Disjoint folders that hold all files of a table that can be orphans, each with those below.

    Descends at most ``levels`` partition levels, until there are ``enough`` folders.
    """
    found = [each for each in _subfolders(filesystem, table_path) if each not in _OTHERS]
    folders = [f"{table_path}/{name}" for name in found]
    for _ in range(levels):
        if len(folders) >= enough:
            break
        opened = in_parallel(lambda folder: _opened(filesystem, folder), folders)
        folders = [each for inside in opened for each in inside]
    return [(each, True) for each in folders]


def _opened(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    """The subfolders of a partition's folder; a folder that directly holds files stays as it is."""
    name = folder.rpartition("/")[2]
    if name in _METADATA or _BUCKET.fullmatch(name):
        return [folder]
    return [f"{folder}/{each}" for each in _subfolders(filesystem, folder)]


def _subfolders(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    infos = own_files(filesystem, folder, recursive=False)
    return sorted(info.base_name for info in infos if info.type == pafs.FileType.Directory)


def names_of(content: bytes) -> Names:
    """The names and places of the files that a manifest adds and removes.

    Raises:
        ValueError, KeyError, TypeError: it is not a manifest.
    """
    found = files_of_manifest(map(named_file, records(open_manifest(content))), _keys)
    return Names(found.adds, found.removes)


def needed_names(
    roots: Sequence[Sequence[int]], manifests: Mapping[int, Names], stored: Set[str]
) -> set[str]:
    """The names among ``stored`` of files that are live in a snapshot or tag.

    ``roots`` are the numbers of the manifests of each of them.
    """
    files = {number: ManifestFiles(*each) for number, each in manifests.items()}
    named = {key for each in files.values() for key in each.adds if key[0] in stored}
    known = [[each for each in root if each in files] for root in roots]
    return {name for name, _ in live_files(known, files, named)}


def _keys(file: NamedFile) -> list[tuple[str, bytes]]:
    """The name and place of a data file and of its extra files."""
    place = b"%d:%s:%s" % (file.bucket, file.partition, (file.external_path or "").encode())
    return [(name, place) for name in (file.name, *file.extra_files)]
