"""The interfaces that a table format implements. Driver half and executor half are separate.

After Trino's ``ConnectorMetadata``, ``ConnectorMergeSink`` and ``ConnectorPageSink``, cut down to
what MERGE needs: DELETE and UPDATE are merges without a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.dynamic_filter import DynamicFilter
from spark_jobs.spi.maintenance import ConnectorMaintenance
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.storage import FileLocation, WarehouseStorage
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, RowChangeParadigm, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, WriteLayout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.spi.arrow_tasks import ArrowFunction


class ConnectorMetadata(Protocol):
    """Tables, their pinned snapshots and how their rows change. Driver only.

    A connector that only reads inherits the defaults of ``require_writable`` and what follows it.
    """

    def load_table(self, name: TableName) -> TableHandle:
        """The table, pinned at its latest snapshot.

        Raises:
            CatalogError: WAREHOUSE_NOT_FOUND, TABLE_NOT_FOUND, METADATA_UNREADABLE.
        """
        ...

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        """Create the table, and its database; False when an equal one exists.

        Raises:
            CatalogError: TABLE_DIFFERS, with every difference listed.
            NotSupportedError: a type or an option that the format cannot hold.
        """
        ...

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        """All data files of the pinned snapshot; ``ordinal`` is the index in this tuple.

        Raises:
            NotSupportedError: a file that cannot be read right here (another format, an older
                schema), with the reason.
        """
        ...

    def require_writable(self, table: TableHandle) -> None:
        """Check that rows of this table can be changed; asked before the methods below.

        Raises:
            NotSupportedError: they cannot, with the reason.
        """
        raise no_merge(table)

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """How this table's rows are changed."""
        raise no_merge(table)

    def insert_layout(self, table: TableHandle) -> WriteLayout:
        """How INSERT rows shall reach the sink."""
        raise no_merge(table)

    def update_layout(self, table: TableHandle) -> WriteLayout:
        """How UPDATE and DELETE rows shall reach the sink."""
        raise no_merge(table)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows that executors read without the JVM.

    ``function``, picklable, is one of ``mapInArrow``: from numbers of tasks it makes batches whose
    first columns are those that were asked for, in their order. ``files`` has, for each task, the
    ordinals of the files that it reads.
    """

    function: ArrowFunction
    files: tuple[tuple[int, ...], ...]


class ConnectorScan(Protocol):
    """Reading target rows through Spark. Driver only."""

    def arrow_rows(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
    ) -> ArrowRows | None:
        """The rows of ``files`` as of the pinned snapshot; None where only ``read`` can."""
        ...

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
    ) -> DataFrame:
        """The rows of ``files`` as of the pinned snapshot.

        Columns: ``columns`` in that order with the table's names and types, then
        ``__merge_row_id``: a struct, opaque to the engine but for ``WriteLayout``. Rows of no use
        under ``dynamic_filter`` may be left out, and it is faster to do so.
        """
        ...


class ConnectorMergeWrites(Protocol):
    """The life of a write. Driver only."""

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Prepare the write and guard the base snapshot against expiry; no data file yet.

        Nothing at all is stored for a dry run, neither here nor by the sinks.
        """
        raise no_merge(table)

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        """What removes ``files`` as they are, without reading them; nothing happens yet."""
        raise no_merge(table)

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        """The partitions of the fragments' files: Python values by column, perhaps repeated."""
        raise no_merge(table)

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish all fragments as one atomic snapshot that records ``properties``.

        What publishing took is put into them by ``published_properties``.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            JobError: of ``MergeWrite.require_wanted`` (nothing was published).
        """
        raise no_merge(table)

    def abort_merge(self, table: TableHandle, handle: MergeHandle) -> None:
        """Remove every file that the write left and the guard; it certainly was not published.

        The guard stays where another try of the operation has committed, or may have. Sink tasks
        that ended well before another one failed have written files that the driver never heard of.
        """
        raise no_merge(table)

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Let the base snapshot of a finished operation expire; its result is stored by now."""
        ...

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that this operation made earlier; None when it certainly made none.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED when snapshots since the recorded base are gone.
        """
        ...


class NoMergeWrites(ConnectorMergeWrites):
    """The writes of a connector that only reads: no operation has ever committed."""

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """None was set."""

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """None."""
        return None


def no_merge(table: TableHandle) -> NotSupportedError:
    """The error of a write to a table of a connector that only reads."""
    return NotSupportedError(
        f"Rows of {table.name} cannot be changed: its connector only reads tables.",
        "Change the table with the engine that made it.",
    )


@dataclass(frozen=True, slots=True)
class Connector:
    """All of a table format that the engine sees, opened on one catalog.

    A connector that only reads leaves ``writes`` out. ``storage`` is the catalog's workspace.
    ``locate`` finds the files of a URI with the catalog's keys; None: it knows no such storage.
    ``maintenance`` None: the connector has none.
    """

    metadata: ConnectorMetadata
    scan: ConnectorScan
    storage: WarehouseStorage
    writes: ConnectorMergeWrites = field(default_factory=NoMergeWrites)
    locate: Callable[[str], FileLocation | None] = lambda _uri: None
    maintenance: ConnectorMaintenance | None = None
