"""Partitions and keys in manifests, byte for byte. Driver only.

Paimon's Java library compares partitions by their bytes (``BinaryRow``): a removal whose partition
has other bytes than that of the addition removes nothing. pypaimon decodes partitions and encodes
them again, but differs from Java for NULL in a DECIMAL of more than 18 digits or in a TIMESTAMP of
more than 3, and for some negative decimals of more than 18 digits. In tables with such a partition
key or primary key, what was read keeps its bytes, and new partitions are encoded as by Java. So are
the first and last keys of all new files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.paimon.format.buckets import binary_row
from spark_jobs.connectors.paimon.format.types import atomic_parts, timestamp_precision

_COMPACT_DECIMAL: Final = 18
_VECTORS: Final = "DELETION_VECTORS"
_RANGES: Final = "_DELETIONS_VECTORS_RANGES"
_COMPACT_TIMESTAMP: Final = 3


def new_partition(table: Any, values: Sequence[Any]) -> Any:
    """The partition with these values, for a manifest entry."""
    from pypaimon.table.row.generic_row import GenericRow

    fields = table.partition_keys_fields
    if not _have_other_bytes(fields):
        return GenericRow(list(values), fields)
    return encoded_row(values, fields)


def encoded_row(values: Sequence[Any], fields: Sequence[Any]) -> Any:
    """A row of pypaimon's ``fields`` that manifests hold with the bytes that Java would write."""
    from pypaimon.schema.data_types import PyarrowFieldParser

    kinds = [PyarrowFieldParser.from_paimon_type(field.type) for field in fields]
    columns = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return _stored_row()(binary_row(columns), fields)


def manifest_file_manager(table: Any) -> Any:
    """The reader and writer of manifests."""
    from pypaimon.manifest.manifest_file_manager import ManifestFileManager

    fields = [*table.partition_keys_fields, *table.trimmed_primary_keys_fields]
    return (_manifests() if _have_other_bytes(fields) else ManifestFileManager)(table)


def index_manifest_file(table: Any) -> Any:
    """The reader and writer of index manifests."""
    has_other_bytes = _have_other_bytes(table.partition_keys_fields)
    return (_exact_index_manifests() if has_other_bytes else _index_manifests())(table)


def _have_other_bytes(fields: Sequence[Any]) -> bool:
    """Whether pypaimon may encode a row of its ``fields`` differently from Java."""
    for field in fields:
        kind = field.type.to_dict()
        name, precision, _ = atomic_parts(kind)
        if name == "DECIMAL" and (precision or 0) > _COMPACT_DECIMAL:
            return True
        if (timestamp_precision(kind) or 0) > _COMPACT_TIMESTAMP:
            return True
    return False


# Classes within functions, because importing a module does not import pypaimon.


@cache
def _stored_row() -> Any:
    from pypaimon.table.row.binary_row import BinaryRow
    from pypaimon.table.row.generic_row import GenericRow, GenericRowDeserializer

    class StoredRow(GenericRow, BinaryRow):  # type: ignore[misc]
        """A row that is encoded as the bytes that it was decoded from."""

        def __init__(self, data: bytes, fields: Sequence[Any]) -> None:
            super().__init__(GenericRowDeserializer.from_bytes(data, fields).values, fields)
            self.data = data

    return StoredRow


@cache
def _manifests() -> Any:
    from pypaimon.manifest.manifest_file_manager import ManifestFileManager

    class Manifests(ManifestFileManager):  # type: ignore[misc]
        """Reads entries with the bytes of their partitions and keys."""

        def read(
            self,
            manifest_file_name: str,
            manifest_entry_filter: Callable[[Any], bool] | None = None,
            *arguments: Any,
            early_record_filter: Callable[[Any], bool] | None = None,
            **options: Any,
        ) -> Any:
            stored: Any = None

            def is_wanted_record(record: Any) -> bool:
                nonlocal stored
                stored = record
                return early_record_filter is None or early_record_filter(record)

            def is_wanted(entry: Any) -> bool:
                partition, file = stored["_PARTITION"], stored["_FILE"]
                entry.partition = _stored_row()(partition, self.partition_keys_fields)
                key = self.trimmed_primary_keys_fields
                if key:
                    entry.file.min_key = _stored_row()(file["_MIN_KEY"], key)
                    entry.file.max_key = _stored_row()(file["_MAX_KEY"], key)
                return manifest_entry_filter is None or manifest_entry_filter(entry)

            return super().read(
                manifest_file_name,
                is_wanted,
                *arguments,
                early_record_filter=is_wanted_record,
                **options,
            )

    return Manifests


@cache
def _index_manifests() -> Any:
    from pypaimon.manifest.index_manifest_file import IndexManifestFile

    class IndexManifests(IndexManifestFile):  # type: ignore[misc]
        """Writes an index file without vectors as Java does, which cannot read it otherwise."""

        def _to_avro_record(self, entry: Any) -> dict[str, Any]:
            record: dict[str, Any] = super()._to_avro_record(entry)
            if record["_INDEX_TYPE"] == _VECTORS and record[_RANGES] is None:
                record[_RANGES] = []
            return record

    return IndexManifests


@cache
def _exact_index_manifests() -> Any:
    import fastavro

    class ExactIndexManifests(_index_manifests()):  # type: ignore[misc]
        """Reads entries with the bytes of their partitions."""

        def read(self, index_manifest_name: str) -> Any:
            entries = super().read(index_manifest_name)
            if not entries:
                return entries
            path = f"{self.manifest_path}/{index_manifest_name}"
            with self.file_io.new_input_stream(path) as stream:
                records: Iterator[Any] = fastavro.reader(stream)
                stored = [record["_PARTITION"] for record in records]
            fields = self.partition_keys_fields
            return [
                replace(entry, partition=_stored_row()(partition, fields))
                for entry, partition in zip(entries, stored, strict=True)
            ]

    return ExactIndexManifests
