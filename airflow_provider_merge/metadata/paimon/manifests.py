"""The data files of a Paimon snapshot, from its manifest lists, manifests and index manifest.

Columns' statistics are skipped: only what counts rows, files and bytes is decoded. The layout is
that of Paimon's file store; what of it anybody could have written is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from airflow_provider_merge.metadata.avro import Fields, Only, records
from airflow_provider_merge.metadata.checked import number, reading, whole
from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshot, file_name
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import read_bytes
from airflow_provider_merge.storage.locations import is_local

# Paimon rolls manifests at 8 MB; lists and index manifests are smaller.
MAX_MANIFEST: Final = 64 * 1024 * 1024
MAX_FILES: Final = 5_000_000
_READERS: Final = 8
_ADD: Final = 0
_STATS: Final[Fields] = {"_MIN_VALUES": None, "_MAX_VALUES": None}
_LIST: Final[Fields] = {"_FILE_NAME": None, "_PARTITION_STATS": _STATS}
_ENTRY: Final[Fields] = {
    "_KIND": None,
    "_PARTITION": None,
    "_BUCKET": None,
    "_FILE": {
        "_FILE_NAME": None,
        "_FILE_SIZE": None,
        "_ROW_COUNT": None,
        "_MIN_SEQUENCE_NUMBER": None,
        "_MAX_SEQUENCE_NUMBER": None,
        "_LEVEL": None,
        "_CREATION_TIME": None,
        "_DELETE_ROW_COUNT": None,
        "_FIRST_ROW_ID": None,
        "_SCHEMA_ID": None,
        "_EXTERNAL_PATH": None,
    },
}
_INDEX: Final[Fields] = {
    "_KIND": None,
    "_PARTITION": None,
    "_BUCKET": None,
    "_INDEX_TYPE": None,
    "_FILE_NAME": None,
    "_DELETIONS_VECTORS_RANGES": None,
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live data file; ``partition`` is a binary row, ``size`` is in bytes.

    ``numbers`` are the first and last sequence number, which order the files of a fixed bucket.
    ``created_millis`` is what the writer's clock showed in the writer's own time zone. The file is
    not in the table's folder if it has an ``external_path``.
    """

    partition: bytes
    bucket: int
    level: int
    name: str
    rows: int
    size: int
    numbers: tuple[int, int]
    created_millis: int | None
    deleted_keys: int | None
    first_row_id: int | None
    schema_id: int | None
    external_path: str | None


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """How many rows of a data file a deletion vector marks; None: an older writer did not say."""

    partition: bytes
    bucket: int
    file: str
    count: int | None


PartitionRange = Callable[[bytes, bytes], bool]
PartitionTest = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests in ``folder`` (a path or URI); ``storage_options`` hold secrets."""

    folder: str
    storage_options: Mapping[str, Any] = field(repr=False)

    def live_files(
        self, snapshot: PaimonSnapshot, may_hold: PartitionRange, keeps: PartitionTest | None = None
    ) -> list[DataFile]:
        """The data files of a snapshot, or those in partitions that ``keeps`` wants.

        ``may_hold`` decides by the smallest and largest partition values of a manifest whether it
        is read at all.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        live: dict[tuple[Any, ...], DataFile] = {}
        removed_first: set[tuple[Any, ...]] = set()
        for kind, file in self._entries(snapshot.manifest_lists, may_hold, keeps):
            key = (file.partition, file.bucket, file.level, file.name)
            if kind == _ADD and key in removed_first:
                removed_first.discard(key)
            elif kind == _ADD:
                live[key] = file
            elif live.pop(key, None) is None:
                removed_first.add(key)
            if len(live) + len(removed_first) > MAX_FILES:
                raise unreadable(self.folder, f"lists more than {MAX_FILES:,} data files")
        return list(live.values())

    def changed_partitions(self, snapshot: PaimonSnapshot) -> set[bytes]:
        """The partitions in which the snapshot added or removed a data file.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        return {file.partition for _, file in self.delta_files(snapshot)}

    def delta_files(self, snapshot: PaimonSnapshot) -> Iterator[tuple[bool, DataFile]]:
        """The data files that the snapshot added (True) or removed.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        delta = snapshot.manifest_lists[-1:]
        for kind, file in self._entries(delta, lambda _low, _high: True):
            yield kind == _ADD, file

    def marked_rows(self, snapshot: PaimonSnapshot) -> list[MarkedRows]:
        """What the deletion vectors of a snapshot mark.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        return [
            MarkedRows(entry["_PARTITION"], entry["_BUCKET"], vector["f0"], vector["_CARDINALITY"])
            for entry in self._vector_entries(snapshot)
            for vector in entry["_DELETIONS_VECTORS_RANGES"] or ()
        ]

    def vector_files(self, snapshot: PaimonSnapshot) -> set[tuple[bytes, str]]:
        """Partition and name of every file of deletion vectors.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        entries = self._vector_entries(snapshot)
        return {(entry["_PARTITION"], entry["_FILE_NAME"]) for entry in entries}

    def _vector_entries(self, snapshot: PaimonSnapshot) -> Iterator[dict[str, Any]]:
        if snapshot.index_manifest is None:
            return
        path, content = self._content(snapshot.index_manifest)
        with reading(path):
            for entry in records(content, _INDEX):
                if entry["_KIND"] == _ADD and entry["_INDEX_TYPE"] == "DELETION_VECTORS":
                    for vector in entry["_DELETIONS_VECTORS_RANGES"] or ():
                        vector.setdefault("_CARDINALITY", None)
                        number(vector["_CARDINALITY"] or 0)
                    yield entry

    def _entries(
        self, lists: Iterable[str], may_hold: PartitionRange, keeps: PartitionTest | None = None
    ) -> Iterator[tuple[int, DataFile]]:
        only = None if keeps is None else Only("_PARTITION", keeps)
        names = [name for each in lists for name in self._listed(each, may_hold)]
        for path, content in self._contents(names):
            with reading(path):
                for record in records(content, _ENTRY, only):
                    yield record["_KIND"], _data_file(record)

    def _listed(self, manifest_list: str, may_hold: PartitionRange) -> list[str]:
        path, content = self._content(manifest_list)
        with reading(path):
            manifest_names = []
            for record in records(content, _LIST):
                name, stats = file_name(record["_FILE_NAME"]), record["_PARTITION_STATS"]
                if may_hold(stats["_MIN_VALUES"], stats["_MAX_VALUES"]):
                    manifest_names.append(name)
            return manifest_names

    def _contents(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """The manifests in their order; from an object store a few at a time."""
        if is_local(self.folder) or len(names) < 2:
            yield from map(self._content, names)
            return
        with ThreadPoolExecutor(_READERS) as readers:
            for start in range(0, len(names), _READERS):
                yield from readers.map(self._content, names[start : start + _READERS])

    def _content(self, name: str) -> tuple[str, bytes]:
        path = f"{self.folder}/{name}"
        content = read_bytes(path, self.storage_options, MAX_MANIFEST)
        if content is None:
            raise unreadable(path, "is gone")
        return path, content


def _data_file(record: dict[str, Any]) -> DataFile:
    file = record["_FILE"]
    created, first = file.get("_CREATION_TIME"), file.get("_FIRST_ROW_ID")
    if isinstance(created, datetime):
        created = int(created.timestamp() * 1000)
    return DataFile(
        partition=record["_PARTITION"],
        bucket=whole(record["_BUCKET"]),
        level=number(file["_LEVEL"]),
        name=file["_FILE_NAME"],
        rows=number(file["_ROW_COUNT"]),
        size=number(file["_FILE_SIZE"]),
        numbers=(whole(file["_MIN_SEQUENCE_NUMBER"]), whole(file["_MAX_SEQUENCE_NUMBER"])),
        created_millis=created,
        deleted_keys=file.get("_DELETE_ROW_COUNT"),
        first_row_id=None if first is None else whole(first),
        schema_id=file.get("_SCHEMA_ID"),
        external_path=file.get("_EXTERNAL_PATH"),
    )
