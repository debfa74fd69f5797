"""Manifest lists and manifests, read without pyiceberg, which loses fields. Driver only.

Follows the Iceberg specification, "Manifests" and "Manifest Lists". Sequence numbers and the ids of
first rows are inherited as it says; numbers of tables of version 1 are 0.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.iceberg.format.values import (
    big_endian,
    require_number,
    require_number_or_none,
    require_row_id,
    require_text,
    signed,
)
from spark_jobs.formats.avro.container import AvroFile
from spark_jobs.formats.avro.decoding import BlockDecoder, decoding_schema, stored_values

# What the files in a manifest are, and what one file is.
DATA: Final = 0
DELETES: Final = 1
POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2
EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
# The format of files with deletion vectors.
PUFFIN: Final = "PUFFIN"
# What a compaction has to know of a data file.
_LEAN: Final = frozenset(
    (
        *("content", "file_path", "file_format", "partition", "record_count"),
        *("file_size_in_bytes", "key_metadata", "sort_order_id", "first_row_id"),
    )
)
# Fields of a manifest list that version 1 may leave out, and counts by their older names.
_OPTIONAL_NUMBERS: Final = (
    "manifest_length",
    *(f"{kind}_files_count" for kind in ("added", "existing", "deleted")),
    *(f"{kind}_data_files_count" for kind in ("added", "existing", "deleted")),
)


# Location, and place in the file: a Puffin file may have the vectors of several data files.
FileKey = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """An entry of a manifest list; ``record`` has all of its fields."""

    path: str
    spec_id: int
    content: int
    sequence_number: int
    record: Mapping[str, Any]

    @property
    def entries(self) -> int:
        """About how many entries it has."""
        names = ("added_files_count", "existing_files_count", "deleted_files_count")
        return sum(self.record.get(name) or 0 for name in names)

    @property
    def may_have_live_files(self) -> bool:
        """False if every entry is of a removed file."""
        counts = [self.record.get(f"{kind}_files_count") for kind in ("added", "existing")]
        counts = [
            self.record.get(f"{kind}_data_files_count") if count is None else count
            for kind, count in zip(("added", "existing"), counts, strict=True)
        ]
        return any(count is None or count > 0 for count in counts)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file in the manifest ``listed_in``; ``record`` has all fields of its ``data_file``.

    ``partition`` has Avro's values by the ids of the partition fields. The id of the first row is
    in ``record`` even if the manifest left it out.
    """

    status: int
    snapshot_id: int | None
    sequence_number: int
    file_sequence_number: int | None
    spec_id: int
    partition: Mapping[int, Any]
    record: Mapping[str, Any]
    listed_in: str

    @property
    def path(self) -> str:
        """The location of the file, as the manifest spells it."""
        return str(self.record["file_path"])

    @property
    def key(self) -> FileKey:
        """What tells it from all other files and vectors of a snapshot."""
        place = self.record.get("content_offset")
        return self.path, None if place is None else int(place)

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.file_format == PUFFIN

    @property
    def first_row_id(self) -> int | None:
        """The id of its first row; None: the rows have no ids."""
        found = self.record.get("first_row_id")
        return None if found is None else int(found)

    @property
    def content(self) -> int:
        """``DATA``, ``POSITION_DELETES`` or ``EQUALITY_DELETES``."""
        return int(self.record.get("content") or DATA)

    @property
    def file_format(self) -> str:
        """In upper case: ``PARQUET``, ``PUFFIN``, ``ORC``, ``AVRO``."""
        return str(self.record["file_format"]).upper()

    @property
    def row_count(self) -> int:
        """The number of rows in the file; of a deletion vector, of rows that it marks."""
        return int(self.record["record_count"])

    @property
    def size(self) -> int:
        """In bytes; of a deletion vector, that of its part of the file."""
        return content_size(self.record)

    @property
    def equality_ids(self) -> tuple[int, ...]:
        """The ids of the columns by whose values a file of equality deletes deletes, ascending.

        Raises:
            ValueError: it names none.
        """
        ids = self.record.get("equality_ids")
        if not ids:
            raise ValueError(f"the equality deletes in {self.path} name no columns")
        return tuple(sorted(map(int, ids)))

    def by_id(self, name: str) -> dict[int, Any]:
        """A map of the file's metrics, by field id."""
        metrics = self.record.get(name)
        if metrics is None:
            return {}
        if isinstance(metrics, Mapping):
            return {int(key): value for key, value in metrics.items()}
        return {each["key"]: each["value"] for each in metrics}


def content_size(record: Mapping[str, Any]) -> int:
    """The size of a file, or of a vector in it, in bytes."""
    of_vector = record.get("content_size_in_bytes")
    return int(record["file_size_in_bytes"] if of_vector is None else of_vector)


def read_list(content: bytes) -> list[ListedManifest]:
    """The manifests of a snapshot.

    Raises:
        KeyError, TypeError, ValueError: the file is damaged or hostile.
        NotSupportedError: its codec is unknown.
    """
    return [listed_manifest(record) for record in _records(open_manifest(content))]


def listed_manifest(record: Mapping[str, Any]) -> ListedManifest:
    """An entry of a manifest list; raises as ``read_list``."""
    if record.get("key_metadata") is not None:
        raise EncryptedError
    number = record.get("sequence_number") or 0
    manifest = ListedManifest(
        path=record["manifest_path"],
        spec_id=record["partition_spec_id"],
        content=record.get("content") or DATA,
        sequence_number=number,
        record=record,
    )
    require_text("manifest_path", manifest.path)
    for name in ("spec_id", "content", "sequence_number"):
        require_number(name, getattr(manifest, name))
    for name in _OPTIONAL_NUMBERS:
        require_number_or_none(name, record.get(name))
    require_row_id(record)
    return manifest


class EncryptedError(Exception):
    """A file is encrypted."""


def read_manifest(content: bytes, listed: ListedManifest) -> list[ManifestEntry]:
    """The entries of a manifest, those of removed files included.

    Raises:
        KeyError, TypeError, ValueError: the file is damaged or hostile.
        NotSupportedError: its codec is unknown.
        EncryptedError: a file of it is encrypted.
    """
    return [entry for entry, _ in entries_with_records(open_manifest(content), listed)]


def lean_entries(content: bytes, listed: ListedManifest) -> Iterator[ManifestEntry]:
    """The entries of a manifest of data files with a few fields; raises as ``read_manifest``.

    For very many: equal partitions of a manifest are one object.
    """
    file = open_manifest(content)
    written = decoding_schema(file.schema)
    decoder = BlockDecoder(written, _with_lean_files(written))
    fields, partitions = _partition_names(file), dict[str, Mapping[int, Any]]()
    row_ids = _RowIds(listed)
    for block in file.blocks():
        for record in decoder.records(block):
            entry = _entry(record, fields, listed)
            row_ids.complete(record)
            known = partitions.setdefault(repr(entry.partition), entry.partition)
            lean_record = {name: each for name, each in entry.record.items() if name != "partition"}
            lean_record["file_format"] = sys.intern(entry.record["file_format"])
            yield replace(entry, partition=known, record=lean_record)


def _with_lean_files(schema: Any) -> Any:
    """The schema of a manifest, of whose files only ``_LEAN`` is read."""
    fields = [
        {**field, "type": {**field["type"], "fields": _lean(field["type"]["fields"])}}
        if field["name"] == "data_file"
        else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _lean(fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in fields if each["name"] in _LEAN]


def entries_with_records(
    file: AvroFile, listed: ListedManifest
) -> Iterator[tuple[ManifestEntry, dict[str, Any]]]:
    """The entries of an open manifest with all of their fields; raises as ``read_manifest``."""
    fields, row_ids = _partition_names(file), _RowIds(listed)
    for record in _records(file):
        entry = _entry(record, fields, listed)
        row_ids.complete(record)
        yield entry, record


class _RowIds:
    """Gives the files of a manifest the ids of their first rows that it leaves out.

    Follows ``ManifestReader.idAssigner`` of Iceberg's Java.
    """

    def __init__(self, listed: ListedManifest) -> None:
        self._next = listed.record.get("first_row_id") if listed.content == DATA else None

    def complete(self, record: Mapping[str, Any]) -> None:
        """Complete the next entry."""
        file = record["data_file"]
        if self._next is None or record["status"] == DELETED:
            return
        if file.get("first_row_id") is None:
            file["first_row_id"] = self._next
            self._next += file["record_count"]


def _partition_names(file: AvroFile) -> dict[int, tuple[str, bool]]:
    """As ``_partition`` takes them."""
    return {
        int(each["field-id"]): (each["name"], _is_decimal(each["type"]))
        for each in partition_fields(file.schema)
    }


def _records(file: AvroFile) -> Iterator[dict[str, Any]]:
    decoder = stored_values(file.schema)
    for block in file.blocks():
        yield from decoder.records(block)


class NamedFile(NamedTuple):
    """A live file in a manifest: its location, what it is, and its size in bytes."""

    location: str
    content: int
    size: int


def named_files(content: bytes) -> Iterator[NamedFile]:
    """The live files in a manifest, without what else it says of them; raises as ``read_list``."""
    return live_of(_records(open_manifest(content)))


def live_of(records: Iterable[Mapping[str, Any]]) -> Iterator[NamedFile]:
    """The live files among the records of a manifest.

    Raises:
        KeyError, TypeError, ValueError: they are not such records.
    """
    for record in records:
        if record["status"] not in (EXISTING, ADDED, DELETED):
            raise ValueError(f"an entry has the status {record['status']!r}")
        if record["status"] != DELETED:
            file = record["data_file"]
            require_text("file_path", file["file_path"])
            require_number("file_size_in_bytes", file["file_size_in_bytes"])
            yield NamedFile(
                file["file_path"], file.get("content") or DATA, file["file_size_in_bytes"]
            )


def partition_fields(schema: Any) -> Sequence[Mapping[str, Any]]:
    """The fields of partitions in the Avro schema of a manifest."""
    fields = data_file_fields(schema)
    partition = next(each["type"] for each in fields if each["name"] == "partition")
    return list(partition["fields"])


def data_file_fields(schema: Any) -> Sequence[Mapping[str, Any]]:
    """The fields of files in the Avro schema of a manifest."""
    file = next(each["type"] for each in schema["fields"] if each["name"] == "data_file")
    return list(file["fields"])


def _is_decimal(kind: Any) -> bool:
    members = kind if isinstance(kind, list) else [kind]
    return any(isinstance(e, Mapping) and e.get("logicalType") == "decimal" for e in members)


def _partition(
    fields: Mapping[int, tuple[str, bool]], values: Mapping[str, Any]
) -> Iterator[tuple[int, Any]]:
    """The values by id; ``fields`` has the names in ``values``, and whether they are decimals.

    Decimals have the fewest bytes, so that they are equal however wide their type was.
    """
    for key, (name, is_decimal) in fields.items():
        value = values[name]
        is_long = is_decimal and value is not None
        yield key, big_endian(signed(value)) if is_long else value


def _entry(
    record: Mapping[str, Any], fields: Mapping[int, tuple[str, bool]], listed: ListedManifest
) -> ManifestEntry:
    file = record["data_file"]
    status = record["status"]
    number, of_file = record.get("sequence_number"), record.get("file_sequence_number")
    # Only those of an added file are not known yet when a manifest is written.
    if number is None:
        number = listed.sequence_number if status == ADDED else 0
    if of_file is None and status == ADDED:
        of_file = listed.sequence_number
    entry = ManifestEntry(
        status=status,
        snapshot_id=record.get("snapshot_id"),
        sequence_number=number,
        file_sequence_number=of_file,
        spec_id=listed.spec_id,
        partition=dict(_partition(fields, file["partition"])),
        record=file,
        listed_in=listed.path,
    )
    if file.get("key_metadata") is not None:
        raise EncryptedError
    if status not in (EXISTING, ADDED, DELETED):
        raise ValueError(f"an entry has the status {status!r}")
    require_text("file_path", file["file_path"])
    require_text("file_format", file["file_format"])
    for name in ("record_count", "file_size_in_bytes"):
        require_number(name, file[name])
    require_number("sequence_number", number)
    require_row_id(file)
    for name in ("content_offset", "content_size_in_bytes"):
        require_number_or_none(name, file.get(name))
    require_number_or_none("file_sequence_number", entry.file_sequence_number)
    is_data = entry.content == DATA
    if entry.content not in (DATA, POSITION_DELETES, EQUALITY_DELETES) or is_data != (
        listed.content == DATA
    ):
        raise ValueError(f"{entry.path[:200]} is not one of the files that its manifest lists")
    return entry
