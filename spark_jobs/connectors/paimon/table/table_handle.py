"""The connector's own object in a ``TableHandle``. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from spark_jobs.connectors.paimon.format.bucket_key import POSTPONED, BucketKey
from spark_jobs.connectors.paimon.format.external_paths import (
    OPTION,
    ExternalPaths,
    external_paths,
    external_roots,
)
from spark_jobs.connectors.paimon.format.hash_index import HASH
from spark_jobs.connectors.paimon.format.locations import filesystem_path, path_beside
from spark_jobs.connectors.paimon.format.row_tracking import RowIdentity
from spark_jobs.connectors.paimon.format.schema_history import mappings
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.format.vectors import VectorLocation
from spark_jobs.connectors.paimon.library import (
    data_files,
    index_manifest,
    table_paths,
    table_schema,
)
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_within,
)
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable, keyed_table
from spark_jobs.connectors.paimon.table.row_ranges import FileColumns, range_units
from spark_jobs.connectors.paimon.table.sections import Unit, units
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_parquet
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import TableHandle

_DYNAMIC: Final = -1
_FIRST_COUNT: Final = "postpone.default-bucket-num"


@dataclass(frozen=True)
class PinnedTable:
    """A table pinned at a snapshot; ``snapshot`` is None if the table has none yet.

    ``evolved_from``: the stored table, if a statement adds columns to it; ``table`` then has a
    schema that is not stored. All paths are paths in the warehouse's file system.
    """

    table: Any
    snapshot: Any | None
    schema: PaimonSchema = field(repr=False)
    evolved_from: PinnedTable | None = field(default=None, repr=False)
    _columns_in: dict[int, tuple[FieldMapping, ...] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def options(self) -> Mapping[str, str]:
        """The table's options in the schema."""
        return self.schema.options

    @property
    def buckets(self) -> int | None:
        """The number of fixed buckets; None if the option ``bucket`` says none."""
        count = self._bucket_option
        return count if count > 0 else None

    @property
    def has_buckets(self) -> bool:
        """Whether a row's bucket matters: it is fixed, or depends on the primary key."""
        return self.buckets is not None or self.keyed is not None

    @property
    def has_dynamic_buckets(self) -> bool:
        """Whether the HASH index says which bucket a key is in."""
        return self.keyed is not None and self._bucket_option == _DYNAMIC

    @property
    def postpones_buckets(self) -> bool:
        """Whether partitions have their own bucket counts, and some files wait for their bucket."""
        return self.keyed is not None and self._bucket_option == POSTPONED

    @property
    def _bucket_option(self) -> int:
        return int(self.options.get("bucket", str(_DYNAMIC)))

    def total_buckets(self, partition: tuple[Any, ...]) -> int:
        """The number of buckets of a partition, as its manifest entries have it."""
        if not self.postpones_buckets:
            return self._bucket_option
        return self.postponed_counts.get(partition, self.first_bucket_count)

    @property
    def first_bucket_count(self) -> int:
        """The bucket count of a new partition, where partitions have counts of their own."""
        return int(self.options.get(_FIRST_COUNT, "1"))

    @cached_property
    def postponed_counts(self) -> Mapping[tuple[Any, ...], int]:
        """The bucket counts of partitions that have counts of their own."""
        return {
            tuple(entry.partition.values): entry.total_buckets
            for _, entry in self.located_entries
            if entry.bucket >= 0
        }

    @property
    def marks_rows(self) -> bool:
        """Whether deletion vectors mark deleted rows (option ``deletion-vectors.enabled``)."""
        return self.schema.marks_rows

    @property
    def tracks_rows(self) -> bool:
        """Whether each row has an id, which it keeps (option ``row-tracking.enabled``)."""
        return self.schema.tracks_rows

    @property
    def evolves_columns(self) -> bool:
        """Whether an UPDATE adds files of the assigned columns (``data-evolution.enabled``)."""
        return self.schema.evolves_columns

    @property
    def path(self) -> str:
        """The table's directory."""
        return filesystem_path(table_paths.table_path(self.table))

    @property
    def branch_path(self) -> str:
        """The directory with snapshots and consumers: the table's own, or that of its branch."""
        return filesystem_path(table_paths.branch_path(self.table))

    @cached_property
    def located_entries(self) -> tuple[tuple[str, Any], ...]:
        """Path and manifest entry of every data file, ordered by path; the index is the ordinal.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            NotSupportedError: a file is on other storage than the table.
        """
        if self.snapshot is None:
            return ()
        directories: dict[BucketKey, str] = {}
        located = []
        for entry in data_files.live_entries(self.table, self.snapshot):
            if entry.file.external_path is not None:
                path = path_beside(table_paths.table_path(self.table), entry.file.external_path)
                located.append((path, entry))
                continue
            place = bucket_key_of(entry)
            if place not in directories:
                directories[place] = self.bucket_directory(place)
            located.append((f"{directories[place]}/{entry.file.file_name}", entry))
        self._require_own([path for path, _ in located])
        return tuple(sorted(located, key=lambda each: each[0]))

    @cached_property
    def keyed(self) -> KeyedTable | None:
        """What the schema says about the primary key; None for an append table."""
        return keyed_table(self.schema)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units of reading, by ordinal: a data file, a section, or a range of row ids.

        Those of an append table are its data files; the first file of a range is its anchor.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        if self.evolves_columns:
            next_id = self.snapshot.next_row_id if self.snapshot else None
            return range_units(self.located_entries, self.file_columns, next_id)
        if self.keyed is None:
            return tuple(Unit((index,)) for index in range(len(self.located_entries)))
        return units(self.located_entries, hides_level_0=self.keyed.hides_level_0)

    def unit_entries(self, ordinal: int) -> list[Any]:
        """The manifest entries of a unit's files."""
        return [self.located_entries[index][1] for index in self.units[ordinal].files]

    @cached_property
    def file_columns(self) -> FileColumns:
        """Which of the table's columns each data file holds."""
        return FileColumns(self.schema.columns, self.mapping_of)

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
        with reading_metadata(place_of_metadata(self.table)):
            roots = {self.path}
            if not all(path.startswith(f"{self.path}/") for path in paths):
                for options in table_schema.all_options(self.table):
                    roots |= external_roots(options)
            for path in paths:
                require_within(path, roots)

    @cached_property
    def external(self) -> ExternalPaths | None:
        """The external paths for new files; None: they go to the table's directory.

        Raises:
            NotSupportedError: the table's options cannot be honoured.
        """
        found = external_paths(self.options)
        if found is not None and not self.path.startswith("/"):
            raise NotSupportedError(
                f"Option {OPTION} of a table that is in no local folder is not supported.",
                "Run this statement with Paimon's own engines.",
            )
        return found

    def bucket_directory(self, place: BucketKey) -> str:
        """The directory for a bucket's data files, within the table's directory."""
        location = table_paths.bucket_directory(self.table, place.partition, place.bucket)
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
            schema_id: self.mapping_of(by_kind[schema_id, other])
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

    def identity_of(self, entry: Any) -> RowIdentity | None:
        """How a data file tells the ids of its rows; None: the table does not track them."""
        return RowIdentity.of(entry.file) if self.tracks_rows else None

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


def pinned_table(handle: TableHandle) -> PinnedTable:
    """The connector's own object in a handle."""
    assert isinstance(handle.native, PinnedTable)  # noqa: S101
    return handle.native
