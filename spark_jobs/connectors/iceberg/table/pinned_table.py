"""A table pinned at one snapshot of one branch. Driver only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from spark_jobs.connectors.iceberg.format.schema import IcebergField, opaque_type, parse_fields
from spark_jobs.connectors.iceberg.table.live_files import (
    LiveFile,
    entries_of,
    listed_manifests,
    live_files,
)
from spark_jobs.connectors.iceberg.table.manifests import DELETES, EQUALITY_DELETES
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart
from spark_jobs.contract.partition_keys import PartitionKey
from spark_jobs.formats.iceberg.expiry import history
from spark_jobs.formats.iceberg.transforms import named
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.table_storage import TableStorage

NAME_MAPPING: Final = "schema.name-mapping.default"


@dataclass(frozen=True)
class PinnedTable:
    """What the connector keeps of a table; ``table`` is pyiceberg's.

    ``snapshot`` is pyiceberg's, of the head of ``branch``; None for a table without one. ``fields``
    are all columns of the current schema. ``schema_updates`` are pyiceberg's, which make the schema
    of ``table`` from that of ``evolved_from``: it is stored with the next snapshot.
    """

    table: Any
    storage: TableStorage
    branch: str
    snapshot: Any | None
    fields: tuple[IcebergField, ...]
    evolved_from: PinnedTable | None = None
    schema_updates: tuple[Any, ...] = ()

    @property
    def metadata(self) -> Any:
        """Pyiceberg's ``TableMetadata``."""
        return self.table.metadata

    @property
    def last_sequence_number(self) -> int:
        """That of the newest snapshot of any branch; version 1 has none: 0."""
        return int(getattr(self.metadata, "last_sequence_number", 0))

    @property
    def next_row_id(self) -> int:
        """An id that no row has had; raises ValueError if the metadata, of version 3, lacks it."""
        row_id = self.metadata.next_row_id
        if row_id is None:
            raise ValueError(f"the metadata of {self.place} has no next-row-id")
        return int(row_id)

    @property
    def has_lineage(self) -> bool:
        """Whether the rows have ids: not those of a snapshot from before version 3."""
        return self.snapshot is not None and self.snapshot.first_row_id is not None

    @property
    def has_vectors(self) -> bool:
        """Whether new position deletes are vectors, one for each data file."""
        return int(self.metadata.format_version) >= 3

    @property
    def place(self) -> str:
        """The table and its location, for errors."""
        return f"{'.'.join(self.table.name())} in {self.metadata.location}"

    @cached_property
    def opaque(self) -> tuple[IcebergField, ...]:
        """The columns of types that Spark does not have: statements cannot use them."""
        return tuple(each for each in self.fields if opaque_type(each.type) is not None)

    @property
    def stored_fields(self) -> tuple[IcebergField, ...]:
        """The columns that new files have."""
        return tuple(each for each in self.fields if each.is_stored)

    @cached_property
    def columns(self) -> tuple[IcebergField, ...]:
        """The other columns."""
        return tuple(each for each in self.fields if each not in self.opaque)

    @cached_property
    def specs(self) -> Mapping[int, tuple[PartitionPart, ...]]:
        """The partition specs by id."""
        sources = {each.id: each for each in self.columns}
        return {
            spec.spec_id: tuple(
                PartitionPart(
                    each.field_id, each.name, str(each.transform), sources.get(each.source_id)
                )
                for each in spec.fields
            )
            for spec in self.metadata.partition_specs
        }

    @cached_property
    def known_fields(self) -> Mapping[int, IcebergField]:
        """The columns of all schemas by id, each as it was last; nested fields are not among them.

        Equality deletes may name columns that the table no longer has.
        """
        schemas = sorted(self.metadata.schemas, key=lambda each: int(each.schema_id))
        found = {field.id: field for each in schemas for field in schema_fields(each)}
        return found | {each.id: each for each in self.fields}

    @property
    def partitioned_by(self) -> list[str]:
        """The fields of the current spec: ``column``, ``day(column)``, ``bucket(4, column)``."""
        fields = []
        for part in self.specs[self.metadata.default_spec_id]:
            column = part.name if part.source is None else part.source.name
            fields.append(str(PartitionKey(column, *named(part.transform))))
        return fields

    @property
    def identifiers(self) -> list[str]:
        """The names of the identifier fields of the current schema; nested ones with dots."""
        return list(self.metadata.schema().identifier_field_names())

    @cached_property
    def unpartitioned(self) -> frozenset[int]:
        """The ids of the specs without partition fields."""
        return frozenset(
            number
            for number, parts in self.specs.items()
            if all(part.transform == "void" for part in parts)
        )

    @cached_property
    def files(self) -> tuple[LiveFile, ...]:
        """The data files of the snapshot; the index is the ordinal.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: they are encrypted, or on other storage than the table.
        """
        return self._read(lean=False)

    @cached_property
    def lean_files(self) -> tuple[LiveFile, ...]:
        """``files`` in a fraction of the memory, without the metrics of columns.

        They are there if the snapshot has equality deletes, of which they exclude some. Raises as
        ``files``.
        """
        return self._read(lean=True)

    @cached_property
    def files_by_path(self) -> Mapping[str, LiveFile]:
        """``files`` by the path on the storage; raises as ``files``."""
        return {each.path: each for each in self.files}

    def _read(self, *, lean: bool) -> tuple[LiveFile, ...]:
        if self.snapshot is None:
            return ()
        with reading_metadata(self.place):
            listed = listed_manifests(self.storage, self.snapshot.manifest_list)
            unknown = {each.spec_id for each in listed} - self.specs.keys()
            if unknown:
                raise ValueError(f"the partition spec {min(unknown)} of a manifest is unknown")
            entries = entries_of(self.storage, [each for each in listed if each.content == DELETES])
            is_lean = lean and all(each.content != EQUALITY_DELETES for each in entries)
            data = [each for each in listed if each.content != DELETES]
            entries += entries_of(self.storage, data, lean=is_lean)
            return live_files(self.storage, entries, self.unpartitioned)

    @cached_property
    def name_mapping(self) -> tuple[Mapping[str, Any], ...] | None:
        """The ids of columns in files that have none: ``schema.name-mapping.default``."""
        text = self.metadata.properties.get(NAME_MAPPING)
        with reading_metadata(self.place):
            return None if text is None else tuple(json.loads(text))


def schema_fields(schema: Any) -> tuple[IcebergField, ...]:
    """The columns of pyiceberg's schema."""
    return parse_fields(json.loads(schema.model_dump_json()))


def pinned_table(handle: TableHandle) -> PinnedTable:
    """The connector's own part of a handle."""
    return cast(PinnedTable, handle.native)


def ancestors(table: PinnedTable) -> Iterator[Any]:
    """The snapshots of a branch that have not expired, from its head backwards."""
    known = {each.snapshot_id: each for each in table.metadata.snapshots}
    return history(known, None if table.snapshot is None else table.snapshot.snapshot_id)
