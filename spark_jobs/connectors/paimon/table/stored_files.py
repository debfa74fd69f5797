"""The files of a table at a snapshot, and how its columns are found in them. Driver only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_jobs.connectors.paimon.format.hash_index import HASH
from spark_jobs.connectors.paimon.format.locations import (
    external_roots,
    filesystem_path,
    path_beside,
)
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.format.schema_history import mappings
from spark_jobs.connectors.paimon.format.vectors import VectorLocation
from spark_jobs.connectors.paimon.library import data_files, index_manifest, table_schema
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_within,
)
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.sections import FileColumns, Unit, range_units, units
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_parquet


@dataclass(frozen=True)
class ColumnsInFiles:
    """The columns of ``schema``, that of pypaimon's ``table``, by the schemas of files."""

    table: Any
    schema: PaimonSchema = field(repr=False)
    _columns_in: dict[int, tuple[FieldMapping, ...] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def file_columns(self) -> FileColumns:
        """Which of the table's columns each data file holds."""
        return FileColumns(self.schema.columns, self.mapping_of)

    def mapped_schema(self, entry: Any) -> int | None:
        """The key in ``mappings`` of a data file; None: it has the table's columns."""
        return None if self.mapping_of(entry) is None else int(entry.file.schema_id)

    def mapping_of(self, entry: Any) -> tuple[FieldMapping, ...] | None:
        """How the columns are found in a data file; None: it has the table's columns.

        Raises:
            ChangedTypeError: the type of a column was changed otherwise than by widening.
            FileNotFoundError: the file's schema does not exist.
        """
        if not is_parquet(entry.file.file_name):
            return self.columns_in(entry.file.schema_id) or self._same_columns
        return self.columns_in(entry.file.schema_id)

    @cached_property
    def _same_columns(self) -> tuple[FieldMapping, ...]:
        return self._mappings_from(self.table.table_schema.fields)

    def columns_in(self, schema_id: int) -> tuple[FieldMapping, ...] | None:
        """How the columns are found in files of a schema; None: as in those of today's schema.

        Raises:
            ChangedTypeError: the type of a column was changed otherwise than by widening.
            FileNotFoundError: there is no such schema.
        """
        if schema_id not in self._columns_in:
            self._columns_in[schema_id] = self._columns_of(schema_id)
        return self._columns_in[schema_id]

    def _columns_of(self, schema_id: int) -> tuple[FieldMapping, ...] | None:
        if schema_id == table_schema.schema_id(self.table):
            return None
        old = table_schema.columns_of(self.table, schema_id)
        return None if old is None else self._mappings_from(old)

    def _mappings_from(self, old: Sequence[Any]) -> tuple[FieldMapping, ...]:
        now = table_schema.schema_fields(self.table.table_schema.fields)
        return mappings(table_schema.schema_fields(old), now)


@dataclass(frozen=True)
class StoredFiles:
    """The files of ``snapshot``; none if it is None. All paths are paths in the file system."""

    table: Any
    snapshot: Any | None
    schema: PaimonSchema = field(repr=False)
    keyed: KeyedTable | None
    columns: ColumnsInFiles = field(repr=False)

    @cached_property
    def located_entries(self) -> tuple[tuple[str, Any], ...]:
        """Path and manifest entry of every data file, ordered by path; the index is the ordinal.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            NotSupportedError: a file is on other storage than the table.
        """
        if self.snapshot is None:
            return ()
        entries = data_files.live_entries(self.table, self.snapshot)
        located = self.located(entries)
        return tuple(sorted(located, key=lambda each: each[0]))

    def located(self, entries: Iterable[Any]) -> list[tuple[str, Any]]:
        """Path and entry of data files and changelog files; raises as ``located_entries``."""
        directories: dict[BucketKey, str] = {}
        located = []
        for entry in entries:
            if entry.file.external_path is not None:
                path = path_beside(table_schema.table_path(self.table), entry.file.external_path)
                located.append((path, entry))
                continue
            place = bucket_key_of(entry)
            if place not in directories:
                directories[place] = self.bucket_directory(place)
            located.append((f"{directories[place]}/{entry.file.file_name}", entry))
        self._require_own([path for path, _ in located])
        return located

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units of reading, by ordinal: a data file, a section, or a range of row ids.

        Those of an append table are its data files; the first file of a range is its anchor.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        if self.schema.evolves_columns:
            next_id = self.snapshot.next_row_id if self.snapshot else None
            return range_units(self.located_entries, self.columns.file_columns, next_id)
        if self.keyed is None:
            return tuple(Unit((index,)) for index in range(len(self.located_entries)))
        return units(self.located_entries, hides_level_0=self.keyed.hides_level_0)

    def unit_entries(self, ordinal: int) -> list[Any]:
        """The manifest entries of a unit's files."""
        return [self.located_entries[index][1] for index in self.units[ordinal].files]

    @cached_property
    def pending_buckets(self) -> frozenset[BucketKey]:
        """The buckets with records that batch readers do not see yet."""
        pending = (n for n, unit in enumerate(self.units) if unit.is_pending)
        return frozenset(bucket_key_of(self.unit_entries(ordinal)[0]) for ordinal in pending)

    def _require_own(self, paths: Sequence[str]) -> None:
        """Check that files are in directories that may contain this table's files.

        Raises:
            CatalogError: METADATA_UNREADABLE: a file is somewhere else.
        """
        own = filesystem_path(table_schema.table_path(self.table))
        with reading_metadata(place_of_metadata(self.table)):
            roots = {own}
            if not all(path.startswith(f"{own}/") for path in paths):
                for options in table_schema.all_options(self.table):
                    roots |= external_roots(options)
            for path in paths:
                require_within(path, roots)

    def bucket_directory(self, place: BucketKey) -> str:
        """The directory for a bucket's data files, within the table's directory."""
        location = table_schema.bucket_directory(self.table, place.partition, place.bucket)
        return filesystem_path(location)

    @cached_property
    def mappings(self) -> Mapping[int, tuple[FieldMapping, ...]]:
        """How the columns are found in the files that need it, by the files' schema ids.

        These are the files of schemas with other columns, and all ORC and Avro files, because
        files that replace them are parquet.
        """
        by_kind = {
            (entry.file.schema_id, not is_parquet(entry.file.file_name)): entry
            for _, entry in self.located_entries
        }
        found = {
            schema_id: self.columns.mapping_of(by_kind[schema_id, other])
            for schema_id, other in sorted(by_kind)
        }
        return {schema_id: each for schema_id, each in found.items() if each is not None}

    def deleted_row_count(self, file: Any) -> int:
        """How many rows of a data file its deletion vector marks.

        Raises:
            ValueError: more than the file has.
        """
        vector = self.vectors.get(file.file_name)
        if vector is None:
            return 0
        if not 0 <= vector.cardinality <= file.row_count:
            raise ValueError(
                f"the deletion vector of {file.file_name} deletes {vector.cardinality} rows of "
                f"{file.row_count}"
            )
        return vector.cardinality

    @cached_property
    def index_files(self) -> tuple[IndexFile, ...]:
        """All index files of the snapshot."""
        if self.snapshot is None:
            return ()
        files = tuple(index_manifest.index_files(self.table, self.snapshot))
        self._require_own([file.path for file in files])
        return files

    @cached_property
    def hash_indexes(self) -> Mapping[BucketKey, IndexFile]:
        """The files of the HASH index by bucket."""
        return {bucket_key_of(file.entry): file for file in self.index_files if file.kind == HASH}

    @cached_property
    def vectors(self) -> Mapping[str, VectorLocation]:
        """The locations of deletion vectors by name of the data file."""
        return {
            name: VectorLocation(file.path, each.offset, each.length, each.cardinality or 0)
            for file in self.index_files
            for name, each in file.vectors.items()
        }
