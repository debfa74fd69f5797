"""The files of an Iceberg snapshot, from its manifest list and its manifests.

Columns' statistics are skipped: only what counts rows, files and bytes is decoded. After the
Iceberg specification, "Manifest Lists" and "Manifests"; what of it anybody could have written is
checked before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_merge.metadata.avro import Fields, records
from airflow_provider_merge.metadata.checked import number, reading, whole
from airflow_provider_merge.metadata.iceberg.files import StorageFiles
from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.locations import is_local

MAX_FILES: Final = 5_000_000
# What a manifest holds, and what a file is.
DATA: Final = 0
DELETES: Final = 1
EQUALITY_DELETES: Final = 2
_ADDED: Final = 1
_DELETED: Final = 2
# The column of position deletes that names the data file, by its reserved id.
_PATH_ID: Final = 2147483546
_READERS: Final = 8
_BOUNDS: Final[Fields] = {"contains_null": None, "lower_bound": None, "upper_bound": None}
_LIST: Final[Fields] = dict.fromkeys(
    (
        *("manifest_path", "partition_spec_id", "content", "added_snapshot_id", "partitions"),
        *("added_rows_count", "existing_rows_count"),
    )
)
_FILE: Final[Fields] = dict.fromkeys(
    ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes")
)
_DELETE_FILE: Final[Fields] = {
    **_FILE,
    **dict.fromkeys(("referenced_data_file", "lower_bounds", "upper_bounds")),
    # Of a deletion vector, which shares its file with others.
    "content_size_in_bytes": None,
}
_ENTRY: Final = ("status", "snapshot_id")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a manifest's values of one partition field lie between, as manifest lists have it."""

    has_null: bool
    low: bytes | None
    high: bytes | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest; ``content`` is ``DATA`` or ``DELETES``, ``rows`` are those of its live files.

    ``added_by`` is the snapshot that wrote it. None: it is not told.
    """

    path: str
    spec_id: int
    content: int
    added_by: int | None
    rows: int | None
    bounds: tuple[Bounds, ...]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file, or a file of deletes; ``partition`` has the stored values of its spec's fields.

    Of deletes, ``marks`` is the only data file whose rows they mark; None: they may mark rows of
    any. ``by`` is the snapshot that added or removed it; None: one before that of the manifest.
    """

    content: int
    path: str
    format: str
    spec_id: int
    partition: tuple[Any, ...]
    rows: int
    size: int
    marks: str | None
    is_live: bool
    by: int | None


@dataclass(frozen=True, slots=True)
class Manifests:
    """Reads manifests; ``widths`` has the number of fields of each partition spec."""

    files: StorageFiles
    widths: Mapping[int, int]

    def listed(self, manifest_list: str) -> list[Manifest]:
        """The manifests of a snapshot, from its list.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with reading(manifest_list):
            content = self.files.read(manifest_list)
            return [_manifest(each) for each in records(content, _LIST)]

    def entries(self, manifests: Sequence[Manifest]) -> Iterator[TableFile]:
        """All files that the manifests tell of, the removed ones too.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        count = 0
        for manifest, content in self._contents(manifests):
            width = self.widths.get(manifest.spec_id)
            if width is None:
                raise unreadable(manifest.path, f"is of an unknown spec {manifest.spec_id}")
            fields = _DELETE_FILE if manifest.content == DELETES else _FILE
            with reading(manifest.path):
                wanted = {**dict.fromkeys(_ENTRY), "data_file": fields}
                for record in records(content, wanted):
                    yield _table_file(record, manifest, width)
                    count += 1
                    if count > MAX_FILES:
                        problem = f"and others list more than {MAX_FILES:,} files"
                        raise unreadable(manifest.path, problem)

    def _contents(self, manifests: Sequence[Manifest]) -> Iterator[tuple[Manifest, bytes]]:
        """The manifests in their order; from an object store a few at a time."""
        paths = [each.path for each in manifests]
        yield from zip(manifests, self._read(paths), strict=True)

    def _read(self, paths: Sequence[str]) -> Iterable[bytes]:
        if len(paths) < 2 or is_local(paths[0]):
            yield from map(self.files.read, paths)
            return
        with ThreadPoolExecutor(_READERS) as readers:
            for start in range(0, len(paths), _READERS):
                yield from readers.map(self.files.read, paths[start : start + _READERS])


def _manifest(record: Mapping[str, Any]) -> Manifest:
    rows = [record.get(each) for each in ("added_rows_count", "existing_rows_count")]
    return Manifest(
        path=_text(record["manifest_path"]),
        spec_id=number(record["partition_spec_id"]),
        content=number(record.get("content") or DATA),
        added_by=_optional(record.get("added_snapshot_id")),
        rows=None if None in rows else sum(map(number, rows)),
        bounds=tuple(
            Bounds(bool(each["contains_null"]), each.get("lower_bound"), each.get("upper_bound"))
            for each in record.get("partitions") or ()
        ),
    )


def _table_file(record: Mapping[str, Any], manifest: Manifest, width: int) -> TableFile:
    file, status = record["data_file"], number(record["status"])
    partition = tuple(file["partition"].values())
    if len(partition) != width:
        raise ValueError("a partition has not the fields of its spec")
    by = _optional(record.get("snapshot_id"))
    by = manifest.added_by if by is None else by
    return TableFile(
        content=number(file.get("content") or DATA),
        path=_text(file["file_path"]),
        format=_text(file["file_format"]),
        spec_id=manifest.spec_id,
        partition=partition,
        rows=number(file["record_count"]),
        size=number(file.get("content_size_in_bytes") or file["file_size_in_bytes"]),
        marks=_marked_file(file),
        is_live=status != _DELETED,
        by=by if status in (_ADDED, _DELETED) else None,
    )


def _marked_file(file: Mapping[str, Any]) -> str | None:
    """The only data file that deletes mark rows of: as they say, or as their bounds show."""
    if file.get("content") == EQUALITY_DELETES:
        return None
    named = file.get("referenced_data_file")
    if named is not None:
        return _text(named)
    low, high = (_bound(file.get(each)) for each in ("lower_bounds", "upper_bounds"))
    # Bounds that a writer cut off are not equal.
    return low.decode() if low is not None and low == high else None


def _bound(bounds: Iterable[Mapping[str, Any]] | None) -> bytes | None:
    return next((each["value"] for each in bounds or () if each["key"] == _PATH_ID), None)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a name is not valid")
    return value


def _optional(value: Any) -> int | None:
    return None if value is None else whole(value)
