"""What a connector tells of the changes between two snapshots of a table. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.arrow_rows import ArrowRows

# How the rows of a file changed: they came, or went; or the file itself says so of each row.
CAME: int = 1
GONE: int = -1

Kind = Literal["rows", "changelog"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """Rows of one data file that a snapshot brought (``CAME``) or took away (``GONE``).

    ``rows`` is the same text only for the same rows of the same file, which is at ``path``.
    ``size`` is in bytes. ``native`` is the connector's own.
    """

    snapshot_id: int
    sign: int
    path: str
    rows: str
    size: int
    native: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changed files behind a snapshot of a table, up to the one that ``table`` is pinned at.

    ``kind``: ``rows`` of files are to be compared, those that came with those that went; rows of a
    ``changelog`` tell themselves what happened to them. ``key``: columns that tell two versions of
    a row. ``has_row_ids``: rows have ids that do. Without both, an UPDATE is a row that went and
    one that came.
    """

    table: TableHandle
    files: tuple[ChangedFile, ...]
    kind: Kind = "rows"
    key: tuple[str, ...] = ()
    has_row_ids: bool = False


class ConnectorChanges(Protocol):
    """Finds and reads the files that differ. Driver only."""

    def require_told(self, table: TableHandle, *, net: bool) -> None:
        """Check that the files of such a table tell what changed; ``net`` as in ``changes``.

        Raises:
            NotSupportedError: they do not; gives the reason.
        """
        del table, net

    def require_start(self, table: TableHandle) -> None:
        """Check that all changes behind the pinned snapshot, and no other, will be told later.

        Raises:
            NotSupportedError: some are told later that its rows show already.
        """
        del table

    def changes(self, table: TableHandle, since: int, *, net: bool) -> TableChanges:
        """The changes behind the snapshot ``since`` of the history of ``table``.

        ``net``: the states before and behind matter, not each snapshot between.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND: ``since`` is not in the history, or there is a gap.
            NotSupportedError: as ``require_told``; a file cannot be read correctly here.
        """
        ...

    def changed_rows(
        self, spark: SparkSession, changes: TableChanges, files: Sequence[ChangedFile]
    ) -> ArrowRows:
        """The rows of ``files``, each with all columns of the table, and its id (bigint) if it has.

        Then, of ``rows``: the row's place, whose field ``file`` is the index in ``files``. Of a
        ``changelog``: that index (int), the kind of change (0 insert, 1 before and 2 after an
        update, 3 delete) and a number that orders the changes of a key in a file (bigint). Files of
        a changelog are in the order of their changes.
        """
        ...
