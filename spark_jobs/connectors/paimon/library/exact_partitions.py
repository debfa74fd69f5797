"""Partitions in manifests, byte for byte. Driver only.

Paimon's Java library compares partitions by their bytes (``BinaryRow``): a removal whose partition
has other bytes than that of the addition removes nothing. pypaimon decodes partitions and encodes
them again, but differs from Java for NULL in a DECIMAL of more than 18 digits or in a TIMESTAMP of
more than 3, and for some negative decimals of more than 18 digits. In tables with such a partition
key, what was read keeps its bytes, and new partitions are encoded as by Java.
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
_COMPACT_TIMESTAMP: Final = 3


def new_partition(table: Any, values: Sequence[Any]) -> Any:
    """The partition with these values, for a manifest entry."""
    from pypaimon.schema.data_types import PyarrowFieldParser
    from pypaimon.table.row.generic_row import GenericRow

    fields = table.partition_keys_fields
    if not _has_other_bytes(table):
        return GenericRow(list(values), fields)
    kinds = [PyarrowFieldParser.from_paimon_type(field.type) for field in fields]
    columns = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return _stored_partition()(binary_row(columns), fields)


def manifest_file_manager(table: Any) -> Any:
    """The reader and writer of manifests."""
    from pypaimon.manifest.manifest_file_manager import ManifestFileManager

    return (_manifests() if _has_other_bytes(table) else ManifestFileManager)(table)


def index_manifest_file(table: Any) -> Any:
    """The reader and writer of index manifests."""
    from pypaimon.manifest.index_manifest_file import IndexManifestFile

    return (_index_manifests() if _has_other_bytes(table) else IndexManifestFile)(table)


def _has_other_bytes(table: Any) -> bool:
    """Whether pypaimon may encode a partition differently from Java."""
    for field in table.partition_keys_fields:
        kind = field.type.to_dict()
        name, precision, _ = atomic_parts(kind)
        if name == "DECIMAL" and (precision or 0) > _COMPACT_DECIMAL:
            return True
        if (timestamp_precision(kind) or 0) > _COMPACT_TIMESTAMP:
            return True
    return False


# Classes within functions, because importing a module does not import pypaimon.


@cache
def _stored_partition() -> Any:
    from pypaimon.table.row.binary_row import BinaryRow
    from pypaimon.table.row.generic_row import GenericRow, GenericRowDeserializer

    class StoredPartition(GenericRow, BinaryRow):  # type: ignore[misc]
        """A partition that is encoded as the bytes that it was decoded from."""

        def __init__(self, data: bytes, fields: Sequence[Any]) -> None:
            super().__init__(GenericRowDeserializer.from_bytes(data, fields).values, fields)
            self.data = data

    return StoredPartition


@cache
def _manifests() -> Any:
    from pypaimon.manifest.manifest_file_manager import ManifestFileManager

    class Manifests(ManifestFileManager):  # type: ignore[misc]
        """Reads entries with the bytes of their partitions."""

        def read(
            self,
            manifest_file_name: str,
            manifest_entry_filter: Callable[[Any], bool] | None = None,
            *arguments: Any,
            early_record_filter: Callable[[Any], bool] | None = None,
            **options: Any,
        ) -> Any:
            partition = b""

            def is_wanted_record(record: Any) -> bool:
                nonlocal partition
                partition = record["_PARTITION"]
                return early_record_filter is None or early_record_filter(record)

            def is_wanted(entry: Any) -> bool:
                entry.partition = _stored_partition()(partition, self.partition_keys_fields)
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
    import fastavro
    from pypaimon.manifest.index_manifest_file import IndexManifestFile

    class IndexManifests(IndexManifestFile):  # type: ignore[misc]
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
                replace(entry, partition=_stored_partition()(partition, fields))
                for entry, partition in zip(entries, stored, strict=True)
            ]

    return IndexManifests
