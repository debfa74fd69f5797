"""What the pages about tables show of a table besides what ``TableReader`` tells.

Everything raises what ``TableReader`` raises, and is read from metadata alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from airflow_provider_merge.metadata.differing_files import DifferingFiles, RowColumn
from airflow_provider_merge.metadata.model import CompactionFacts
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec

# An expiry by the limits of the table.
TABLES_OWN: Final = ExpireSnapshotsSpec()


@dataclass(frozen=True, slots=True)
class Ref:
    """A name that keeps a snapshot: of a branch, the snapshot where the branch begins or stands."""

    name: str
    kind: Literal["tag", "branch"]
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a snapshot and all later ones: a running ``operation``, or a ``consumer``."""

    name: str
    kind: Literal["operation", "consumer"]
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """Data files, their bytes and their stored rows that one snapshot added and removed."""

    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    records_added: int
    records_removed: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Data files of a snapshot and their bytes."""

    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expiry would do now.

    ``expiring`` has the ids, oldest first: not all of them if it ``is_cut``. ``first_retained`` is
    the oldest id that stays, 0 for a table without snapshots. ``limits`` has the limits as text, by
    the name of the table's option.
    """

    expiring: Sequence[int]
    first_retained: int
    limits: dict[str, str]
    is_cut: bool = False

    @property
    def removing(self) -> Sequence[int]:
        """The snapshots whose removed files would go, oldest first.

        What a snapshot removed is stored until the one before it has expired.
        """
        return [*self.expiring[1:], *([self.first_retained] if self.expiring else [])]


class PageFacts(Protocol):
    """More of one table's metadata. ``snapshot`` parameters are its reader's own."""

    def writer(self, snapshot: Any) -> str:
        """The engine or user that says it made a snapshot; empty where none says so."""
        ...

    def rows(self, snapshot: Any) -> tuple[int, int] | None:
        """Stored rows that a snapshot says it added and removed; None: it does not say."""
        ...

    def totals(self, snapshot: Any) -> Totals | None:
        """What the snapshot itself says of its files; None: only its manifests tell."""
        ...

    def change(self, snapshot: Any) -> FileChange | None:
        """What a snapshot added and removed, from its manifests if need be; None: nothing tells."""
        ...

    def refs(self) -> list[Ref]:
        """Branches and tags, of each kind the last 200 by name."""
        ...

    def holds(self) -> list[Hold]:
        """What keeps snapshots besides refs, by name."""
        ...

    def schema_ids(self) -> list[int]:
        """The ids of all schemas, the oldest first."""
        ...

    def compaction(self, snapshot: Any) -> list[CompactionFacts]:
        """What a compaction by the table's options would find in a snapshot, by partition.

        Raises:
            NotSupportedError: such a table is not compacted, or an option of it has an invalid
                value.
        """
        ...

    def differing_files(self, before: Any, after: Any) -> list[DifferingFiles]:
        """The data files that only one of two snapshots has, by partition.

        Raises:
            NotSupportedError: they do not tell which rows differ.
        """
        ...

    def row_columns(self, snapshot: Any) -> list[RowColumn]:
        """The columns that the data files of a snapshot have."""
        ...

    def file_options(self, location: str) -> Mapping[str, Any]:
        """How fsspec opens a data file; holds secrets."""
        ...

    def refuse_compaction(self, spec: CompactSpec) -> None:
        """Refuse a table that no job compacts as ``spec`` says.

        Raises:
            NotSupportedError: gives the reason.
        """
        ...

    def expiry(self, now_millis: int, spec: ExpireSnapshotsSpec = TABLES_OWN) -> Expiry:
        """What an expiry would do; where ``spec`` has no limits, by the table's own.

        Raises:
            NotSupportedError: an option of the table has an invalid value.
            RequestError: the limits of ``spec`` and of the table contradict each other.
        """
        ...
