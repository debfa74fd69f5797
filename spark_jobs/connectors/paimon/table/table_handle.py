"""The connector's own object in a ``TableHandle``, and its buckets. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from spark_jobs.connectors.paimon.format.locations import (
    OPTION,
    ExternalPaths,
    external_paths,
    filesystem_path,
)
from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED
from spark_jobs.connectors.paimon.format.row_tracking import RowIdentity
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable, keyed_table
from spark_jobs.connectors.paimon.table.stored_files import ColumnsInFiles, StoredFiles
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import TableHandle

_DYNAMIC: Final = -1
_FIRST_COUNT: Final = "postpone.default-bucket-num"


@dataclass(frozen=True)
class Bucketing:
    """What the option ``bucket`` means on a table with or without a primary key."""

    options: Mapping[str, str]
    is_keyed: bool
    files: StoredFiles

    @property
    def count(self) -> int | None:
        """The number of fixed buckets; None if the option ``bucket`` says none."""
        return self._option if self._option > 0 else None

    @property
    def matters(self) -> bool:
        """Whether a row's bucket matters: it is fixed, or depends on the primary key."""
        return self.count is not None or self.is_keyed

    @property
    def is_dynamic(self) -> bool:
        """Whether the HASH index says which bucket a key is in."""
        return self.is_keyed and self._option == _DYNAMIC

    @property
    def is_postponed(self) -> bool:
        """Whether partitions have their own bucket counts, and some files wait for their bucket."""
        return self.is_keyed and self._option == POSTPONED

    @property
    def _option(self) -> int:
        return int(self.options.get("bucket", str(_DYNAMIC)))

    def total(self, partition: tuple[Any, ...]) -> int:
        """The number of buckets of a partition, as its manifest entries have it."""
        if not self.is_postponed:
            return self._option
        return self.postponed_counts.get(partition, self.first_count)

    @property
    def first_count(self) -> int:
        """The bucket count of a new partition, where partitions have counts of their own."""
        return int(self.options.get(_FIRST_COUNT, "1"))

    @cached_property
    def postponed_counts(self) -> Mapping[tuple[Any, ...], int]:
        """The bucket counts of partitions that have counts of their own."""
        return {
            tuple(entry.partition.values): entry.total_buckets
            for _, entry in self.files.located_entries
            if entry.bucket >= 0
        }


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

    @property
    def options(self) -> Mapping[str, str]:
        """The table's options in the schema."""
        return self.schema.options

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
        return filesystem_path(table_schema.table_path(self.table))

    @property
    def branch_path(self) -> str:
        """The directory with snapshots and consumers: the table's own, or that of its branch."""
        return filesystem_path(table_schema.branch_path(self.table))

    @cached_property
    def keyed(self) -> KeyedTable | None:
        """What the schema says about the primary key; None for an append table."""
        return keyed_table(self.schema)

    @cached_property
    def external(self) -> ExternalPaths | None:
        """The external paths for new files; None: they go to the table's directory.

        Raises:
            NotSupportedError: the table's options cannot be honoured.
        """
        paths = external_paths(self.options)
        if paths is not None and not self.path.startswith("/"):
            raise NotSupportedError(
                f"Option {OPTION} of a table that is in no local folder is not supported.",
                "Run this statement with Paimon's own engines.",
            )
        return paths

    def identity_of(self, entry: Any) -> RowIdentity | None:
        """How a data file tells the ids of its rows; None: the table does not track them."""
        return RowIdentity.of(entry.file) if self.tracks_rows else None

    @cached_property
    def columns(self) -> ColumnsInFiles:
        """How the columns are found in files of former schemas."""
        return ColumnsInFiles(self.table, self.schema)

    @cached_property
    def files(self) -> StoredFiles:
        """The files of the snapshot."""
        return StoredFiles(self.table, self.snapshot, self.schema, self.keyed, self.columns)

    @cached_property
    def bucketing(self) -> Bucketing:
        """How many buckets there are."""
        return Bucketing(self.options, self.keyed is not None, self.files)


def pinned_table(handle: TableHandle) -> PinnedTable:
    """The connector's own object in a handle."""
    assert isinstance(handle.native, PinnedTable)  # noqa: S101
    return handle.native
