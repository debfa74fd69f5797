"""Holds a snapshot's counts, entries and deletion vectors against its files, whatever the table.

Independent of the code that it judges: pypaimon reads the metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
from pypaimon.deletionvectors.deletion_vector import DeletionVector
from pypaimon.manifest.index_manifest_file import IndexManifestFile
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.table.source.deletion_file import DeletionFile

_JAVA_INDEX = re.compile(r"index-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9]+")
_COMPACTED = 1

Place = tuple[tuple[Any, ...], int]


def place_of(entry: Any) -> Place:
    """The partition and bucket of an entry of a data or index manifest."""
    return tuple(entry.partition.values), entry.bucket


def folder_of(table: Any) -> Path:
    """The table's own folder."""
    return Path(str(table.table_path).removeprefix("file://").removeprefix("file:"))


def stored_files(table: Any) -> dict[str, Path]:
    """All files of the table's folder by name."""
    return {path.name: path for path in folder_of(table).rglob("*") if path.is_file()}


def path_of(entry: Any, paths: Mapping[str, Path]) -> Path:
    """Where the file of a manifest entry is, or would be."""
    name = entry.file.file_name
    return Path((entry.file.external_path or "").removeprefix("file:") or paths.get(name, name))


def index_entries(table: Any, snapshot: Any) -> list[Any]:
    """The entries of a snapshot's index manifest."""
    if snapshot.index_manifest is None:
        return []
    return list(IndexManifestFile(table).read(snapshot.index_manifest))


def marked_rows(table: Any, snapshot: Any, paths: Mapping[str, Path]) -> dict[str, set[int]]:
    """The positions of marked rows by the name of their file."""
    found = {}
    for index in index_entries(table, snapshot):
        for name, where in (index.index_file.dv_ranges or {}).items():
            found[name] = set(_positions(table, index.index_file, where, paths))
    return found


def _positions(table: Any, file: Any, where: Any, paths: Mapping[str, Path]) -> list[int]:
    path = file.external_path or paths.get(file.file_name, file.file_name)
    place = DeletionFile(str(path), where.offset, where.length, where.cardinality)
    return list(DeletionVector.read(table.file_io, place).bit_map())


def differing(pairs: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    """What an entry says that is not so: (said, is) by name."""
    for what, (said, is_) in pairs.items():
        if said != is_:
            yield f"its {what} is {is_}, but its entry says {said}"


def problems_of_snapshot(
    table: Any, snapshot: Any, entries: Iterable[Any], paths: Mapping[str, Path]
) -> Iterator[str]:
    """What is wrong with the counts and the deletion vectors of a snapshot with these entries."""
    rows = {(place_of(entry), entry.file.file_name): entry.file.row_count for entry in entries}
    names = Counter(entry.file.file_name for entry in entries)
    yield from (f"{name}: it is live {count} times" for name, count in names.items() if count > 1)
    if snapshot.total_record_count != sum(rows.values()):
        yield (
            f"the snapshot counts {snapshot.total_record_count} records, "
            f"its files have {sum(rows.values())}"
        )
    yield from _problems_of_changes(table, snapshot)
    marked: Counter[str] = Counter()
    for index in index_entries(table, snapshot):
        if index.index_file.index_type != "DELETION_VECTORS":
            continue
        marked.update(list(index.index_file.dv_ranges or ()))
        yield from _problems_of_vectors(table, snapshot, index, rows, paths)
    for name, count in marked.items():
        if count > 1:
            yield f"{name}: it has {count} deletion vectors"


def _problems_of_changes(table: Any, snapshot: Any) -> Iterator[str]:
    """What a snapshot added and removed, and whose work its files are if it is a compaction."""
    folder, changes = folder_of(table) / "manifest", []
    for manifest in ManifestListManager(table).read_delta(snapshot):
        with (folder / manifest.file_name).open("rb") as stream:
            changes += list(fastavro.reader(stream))
    added = [change["_FILE"] for change in changes if change["_KIND"] == 0]
    removed = [change["_FILE"] for change in changes if change["_KIND"] == 1]
    rows = sum(each["_ROW_COUNT"] for each in added) - sum(each["_ROW_COUNT"] for each in removed)
    if snapshot.delta_record_count != rows:
        yield f"the snapshot counts {snapshot.delta_record_count} new records, not {rows}"
    # Java moves whole files to other levels, and leaves them as they are.
    moved = {each["_FILE_NAME"] for each in removed}
    for each in added:
        is_new = snapshot.commit_kind == "COMPACT" and each["_FILE_NAME"] not in moved
        # Java's compactions of ranges of row ids do not say so.
        is_range = each.get("_FIRST_ROW_ID") is not None
        if is_new and not is_range and each["_FILE_SOURCE"] != _COMPACTED:
            yield f"{each['_FILE_NAME']}: it comes from a compaction, but does not say so"


def _was_left_by_java(table: Any, snapshot: Any, name: str) -> bool:
    """Whether the first snapshot with a vector of the gone file ``name`` has it in Java's index.

    Java's compaction of some files leaves their vectors behind, which later snapshots carry on.
    """
    by_java = False
    each = snapshot
    while each is not None and name not in _live_files(table, each):
        holders = [
            entry.index_file.file_name
            for entry in index_entries(table, each)
            if name in (entry.index_file.dv_ranges or ())
        ]
        by_java = any(_JAVA_INDEX.fullmatch(holder) for holder in holders)
        each = table.snapshot_manager().get_snapshot_by_id(each.id - 1) if each.id > 1 else None
    return by_java


def _live_files(table: Any, snapshot: Any) -> set[str]:
    manifests = ManifestListManager(table).read_all(snapshot)
    entries = ManifestFileManager(table).read_entries_parallel(manifests, drop_stats=True)
    return {entry.file.file_name for entry in entries}


def _problems_of_vectors(
    table: Any,
    snapshot: Any,
    index: Any,
    rows: Mapping[tuple[Place, str], int],
    paths: Mapping[str, Path],
) -> Iterator[str]:
    """Deletion vectors of files that are not live, and those that are not as their entry says."""
    file, place = index.index_file, place_of(index)
    path = Path(file.external_path or paths.get(file.file_name, file.file_name))
    for name, said in (file.dv_ranges or {}).items():
        count = rows.get((place, name))
        if count is None:
            if not _was_left_by_java(table, snapshot, name):
                yield f"{name}: it has a deletion vector in bucket {place}, but is not live there"
            continue
        if not path.is_file():
            yield f"{name}: its deletion vector is in {file.file_name}, which there is not"
            continue
        try:
            positions = _positions(table, file, said, paths)
        except RuntimeError as error:
            yield f"{name}: its deletion vector cannot be read: {error}"
            continue
        if said.cardinality not in (None, len(positions)):
            yield f"{name}: {len(positions)} rows are marked, not {said.cardinality}"
        if not positions or max(positions) >= count:
            yield f"{name}: its deletion vector marks no row, or one beyond its {count}"
