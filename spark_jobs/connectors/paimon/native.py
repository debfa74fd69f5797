"""What a ``TableHandle`` of this connector carries besides the SPI's fields. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_jobs.connectors.paimon import index_library, library
from spark_jobs.connectors.paimon.external_paths import ExternalPaths, external_paths, local_file
from spark_jobs.connectors.paimon.index_library import IndexFile
from spark_jobs.connectors.paimon.library import PaimonSchema
from spark_jobs.connectors.paimon.new_rows import Place
from spark_jobs.connectors.paimon.sequence_numbers import place_of
from spark_jobs.connectors.paimon.vectors import VectorLocation
from spark_jobs.spi.tables import TableHandle


@dataclass(frozen=True)
class PaimonTable:
    """A table pinned at a snapshot (None: it has none yet)."""

    table: Any
    snapshot: Any | None
    schema: PaimonSchema = field(repr=False)

    @property
    def options(self) -> Mapping[str, str]:
        """The table's options as the schema has them."""
        return self.schema.options

    @property
    def buckets(self) -> int | None:
        """The number of fixed buckets; None for ``bucket = -1``."""
        count = int(self.options.get("bucket", "-1"))
        return None if count == -1 else count

    @property
    def marks_rows(self) -> bool:
        """Whether rows are deleted by vectors (option ``deletion-vectors.enabled``)."""
        return self.options.get("deletion-vectors.enabled", "false").lower() == "true"

    @property
    def path(self) -> str:
        """The table's directory."""
        return library.table_path(self.table)

    @property
    def branch_path(self) -> str:
        """The directory of snapshots and consumers: the table's own, or that of its branch."""
        return library.branch_path(self.table)

    @cached_property
    def located_entries(self) -> tuple[tuple[str, Any], ...]:
        """Path and manifest entry of every data file, ordered by path: the index is the ordinal.

        Raises:
            NotSupportedError: a file is not on a local file system.
        """
        if self.snapshot is None:
            return ()
        directories: dict[Place, str] = {}
        located = []
        for entry in library.live_entries(self.table, self.snapshot):
            if entry.file.external_path is not None:
                located.append((local_file(entry.file.external_path), entry))
                continue
            place = place_of(entry)
            if place not in directories:
                directories[place] = self.bucket_directory(place)
            located.append((f"{directories[place]}/{entry.file.file_name}", entry))
        return tuple(sorted(located, key=lambda each: each[0]))

    @cached_property
    def external(self) -> ExternalPaths | None:
        """Where new files go instead of the table's directory.

        Raises:
            NotSupportedError: the table's options say what can not be honoured.
        """
        return external_paths(self.options)

    def bucket_directory(self, place: Place) -> str:
        """Where in the table's directory the data files of a bucket belong."""
        return library.bucket_directory(self.table, place.partition, place.bucket)

    @cached_property
    def index_files(self) -> tuple[IndexFile, ...]:
        """All index files of the snapshot."""
        if self.snapshot is None:
            return ()
        return tuple(index_library.index_files(self.table, self.snapshot))

    @cached_property
    def vectors(self) -> Mapping[str, VectorLocation]:
        """Deletion vectors by the name of their data file."""
        return {
            name: VectorLocation(file.path, each.offset, each.length, each.cardinality or 0)
            for file in self.index_files
            for name, each in file.vectors.items()
        }


def native(handle: TableHandle) -> PaimonTable:
    """The connector's own object behind a handle."""
    assert isinstance(handle.native, PaimonTable)  # noqa: S101
    return handle.native
