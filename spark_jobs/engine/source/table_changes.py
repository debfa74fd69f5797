"""Chooses the changes of a table that a run reads: those since the task's mark. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract import codec
from spark_jobs.contract.marks import CONNECTION
from spark_jobs.contract.result import SourceMetrics
from spark_jobs.contract.source_names import called, placed_source
from spark_jobs.contract.table_versions import ALL, NOW, ChangeRange
from spark_jobs.engine.marks.marks import FoundMark, Marks, NewMark, begun_before
from spark_jobs.engine.source.changed_rows import all_rows, changed_rows, refuse_taken_names
from spark_jobs.engine.source.pinned_tables import asked_millis, snapshot_digest
from spark_jobs.errors import CatalogError, ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.changes import TableChanges
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.contract.request import TableSource
    from spark_jobs.spi.changes import ConnectorChanges
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class ChosenChanges:
    """The changes of ``source`` behind the snapshot ``since`` up to that of the pinned ``table``.

    ``changes`` None: all rows of the table, as inserts, or nothing (``is_empty``). ``mark``: that
    of the source once they are applied; None: it stays as it is.
    """

    source: TableSource
    table: TableHandle
    since: int
    changes: TableChanges | None
    is_empty: bool = False
    mark: NewMark | None = None

    @property
    def told(self) -> str:
        """What a run reads, for its log."""
        if self.is_empty:
            return f"{placed_source(self.source)}: no changes since snapshot {self.since}"
        last = self.table.snapshot_id
        if self.changes is None:
            return f"{placed_source(self.source)}: all rows of snapshot {last}"
        files = f"{self.metrics.files:,} files of {self.metrics.bytes:,} bytes"
        return f"{placed_source(self.source)}: changes of snapshots {self.since} to {last}: {files}"

    @property
    def metrics(self) -> SourceMetrics:
        """The files in which the snapshots differ."""
        if self.changes is None:
            return SourceMetrics(files=0, bytes=0, records=None)
        sizes = {each.path: each.size for each in self.changes.files}
        return SourceMetrics(files=len(sizes), bytes=sum(sizes.values()), records=None)

    def frame(self, spark: SparkSession, connector: Connector) -> DataFrame:
        """The rows; as ``changed_rows`` has them."""
        asked = _range(self.source)
        if self.changes is not None:
            return changed_rows(spark, connector, self.changes, net=asked.net)
        rows = all_rows(spark, connector, self.table)
        return rows.limit(0) if self.is_empty else rows


def chosen_changes(
    spark: SparkSession, source: TableSource, connector: Connector, marks: Marks | None, name: str
) -> ChosenChanges:
    """What is to be read of ``source``; ``marks`` are the target's, where it is read by a mark.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND: a gap, or no such start.
        CommitError: MARK_LOST: it is not known, or "now" would leave changes out.
        NotSupportedError: the changes of such a table cannot be told; gives the reason.
        RequestError: REQUEST_INVALID: the mark is not one of changes.
    """
    if connector.changes is None:
        raise NotSupportedError(
            f"{placed_source(source)}: its connector does not tell the changes of tables.",
            "Read the table with table_source.",
        )
    try:
        choice = _Choice(spark, source, connector, connector.changes, name)
        return choice.between() if marks is None else choice.since_mark(marks)
    except JobError as error:
        raise error.within(called(source.name)) from error.__cause__


def _range(source: TableSource) -> ChangeRange:
    assert source.changes is not None  # noqa: S101 - the caller looks
    return source.changes


@dataclass(frozen=True, slots=True)
class _Choice:
    spark: SparkSession
    source: TableSource
    connector: Connector
    changes: ConnectorChanges
    name: str

    def between(self) -> ChosenChanges:
        """The changes between two snapshots that the request names."""
        asked, table = _range(self.source), self._table()
        first, last = asked.from_snapshot, asked.to_snapshot
        assert first is not None  # noqa: S101 - the contract checks that
        if last is not None:
            pinned = self.connector.metadata.at_snapshot(table, last)
            if pinned is None:
                raise _no_end(table, last)
            table = pinned
        return self._read(table, first)

    def since_mark(self, marks: Marks) -> ChosenChanges:
        """The changes since the mark, or those of the first run."""
        table = self._table()
        newest = marks.newest(self.name)
        if newest is None and _range(self.source).start == NOW and marks.has_begun(self.name):
            raise begun_before(placed_source(self.source), marks)
        chosen = self._first(table) if newest is None else self._next(table, newest)
        snapshot = table.snapshot_id or 0
        document = {
            "table": str(table.name),
            "snapshot": snapshot,
            "seen": snapshot_digest(table)[:16],
            **({CONNECTION: self.source.connection} if self.source.connection else {}),
        }
        if newest is not None and document == dict(newest.document):
            return chosen
        mark = NewMark(self.name, document)
        return ChosenChanges(
            chosen.source, table, chosen.since, chosen.changes, chosen.is_empty, mark
        )

    def _table(self) -> TableHandle:
        table = self.connector.metadata.load_table(self.source.table)
        refuse_taken_names(table)
        self.changes.require_told(table, net=_range(self.source).net)
        return table

    def _first(self, table: TableHandle) -> ChosenChanges:
        asked = _range(self.source)
        if asked.start in (ALL, NOW):
            self.changes.require_start(table)
            is_empty = asked.start == NOW or table.snapshot_id is None
            return ChosenChanges(self.source, table, 0, None, is_empty)
        assert asked.start_at is not None  # noqa: S101 - the contract checks that
        at, millis = asked.start_at, asked_millis(self.spark, asked.start_at)
        try:
            begin = self.connector.metadata.load_version(self.source.table, at, millis)
        except JobError as error:
            raise error.within("start") from error.__cause__
        self.changes.require_start(begin)
        assert begin.snapshot_id is not None  # noqa: S101 - it is that of a snapshot
        return self._read(table, begin.snapshot_id)

    def _next(self, table: TableHandle, found: FoundMark) -> ChosenChanges:
        since, seen = _noted(found.document, self.name)
        try:
            self._require_same(table, found.document, since, seen)
            return self._read(table, since)
        except CatalogError as error:
            is_gap = error.code is ErrorCode.SNAPSHOT_NOT_FOUND
            if not is_gap or _range(self.source).on_gap == "fail":
                raise
        return self._read(table, 0)

    def _read(self, table: TableHandle, since: int) -> ChosenChanges:
        if since == (table.snapshot_id or 0):
            return ChosenChanges(self.source, table, since, None, is_empty=True)
        if since == 0:
            self.changes.require_start(table)
            return ChosenChanges(self.source, table, 0, None)
        net = _range(self.source).net
        return ChosenChanges(self.source, table, since, self.changes.changes(table, since, net=net))

    def _require_same(
        self, table: TableHandle, mark: Mapping[str, Any], since: int, seen: str
    ) -> None:
        """Check that the mark is of this table, and that its snapshot is still the same one.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND.
        """
        name, connection = mark["table"], mark.get(CONNECTION)
        if (name, connection) != (str(table.name), self.source.connection):
            where = "" if connection is None else f" of the connection {connection}"
            raise _gap(table, f"the mark is one of {name}{where}")
        if since == 0:
            return
        then = self.connector.metadata.at_snapshot(table, since)
        if then is None:
            raise _gap(
                table,
                f"snapshot {since}, up to which they were applied, has expired, or the table was "
                "rolled back or made anew",
            )
        if snapshot_digest(then)[:16] != seen:
            raise _gap(
                table, f"snapshot {since} is another one than that up to which they were applied"
            )


def _noted(mark: Mapping[str, Any], name: str) -> tuple[int, str]:
    since, digest = mark.get("snapshot"), mark.get("seen")
    is_mark = type(since) is int and isinstance(digest, str) and isinstance(mark.get("table"), str)
    if not is_mark:
        raise codec.invalid(name, "is not a mark of changes of a table")
    assert isinstance(since, int)  # noqa: S101
    assert isinstance(digest, str)  # noqa: S101
    return since, digest


def _gap(table: TableHandle, problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"the changes of {table.name} are not known without a gap: {problem}",
        "Set on_gap='full' to read all rows as inserts, which a MERGE takes for what they are; or "
        "rename the source, which begins a new mark.",
    )


def _no_end(table: TableHandle, snapshot_id: int) -> CatalogError:
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{table.name} does not have snapshot {snapshot_id} in its history; it may have expired",
        "Name a snapshot of its history, or leave to_snapshot out.",
        ("to_snapshot",),
    )
