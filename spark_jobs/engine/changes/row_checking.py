"""The checks and the audit of a run: analysed before it reads data, ready before it publishes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_jobs.contract.operation_files import new_changes_folder
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.contract.row_checks import CHANGES, NEW_ROWS, TARGET, RowCheck
from spark_jobs.contract.side_outputs import SideOutput
from spark_jobs.engine.changes.audit_rows import audit_rows, require_audit_table
from spark_jobs.engine.changes.changed_rows import ChangedRows, ChangeShape
from spark_jobs.engine.changes.check_analysis import (
    NOTHING_READ,
    CheckedReads,
    analyzed_checks,
    checked_views,
)
from spark_jobs.engine.changes.kept_rows import keep
from spark_jobs.engine.query.json_values import json_frame, json_value
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.source.subqueries import with_all_columns
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.errors import DataError, ErrorCode, NotSupportedError, excerpt
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.write.change_writer import TaskReport
    from spark_jobs.engine.write.statement_run import StatementRun
    from spark_jobs.spi.tables import PlannedFile, TableHandle

_SHOWN_ROWS: Final = 10
_COUNTED_ROWS: Final = 10_000
# Characters of a check's rows in an error.
_LONGEST: Final = 4_000


@dataclass(frozen=True, slots=True)
class RowChecking:
    """The checks of one ``run``, which read ``reads``; ``folder`` has what is recorded for them.

    ``audits``: all changes are kept for another table, too; ``late``: what is kept already. Without
    ``checks`` and audit, nothing is recorded, and nothing is done.
    """

    run: StatementRun[Any]
    spark: SparkSession | None
    checks: Sequence[RowCheck]
    shape: ChangeShape
    reads: CheckedReads
    sources: Mapping[str, OpenSource]
    folder: str
    audits: bool = False
    late: tuple[SideOutput, ...] = ()

    @classmethod
    def of(
        cls,
        run: StatementRun[Any],
        spark: SparkSession | None,
        shape: ChangeShape,
        sources: Mapping[str, OpenSource],
        evaluated: Iterable[str] = (),
    ) -> RowChecking:
        """The checks of a run, analysed, and the table of its audit, looked at.

        ``evaluated`` are sources whose rows the run keeps for them, as it has read them.

        Raises:
            JobError: a check is wrong; names it. The audit's table does not fit. No data was read.
        """
        checks, folder = run.guards.checks, new_changes_folder(run.scratch)
        audit = run.guards.audit_table
        if audit is not None:
            require_audit_table(run.connector, TableName.parse(audit))
        audits = audit is not None and not run.dry_run
        reads = NOTHING_READ
        if audits:
            columns = {name: number for number, name in enumerate(shape.types)}
            reads = replace(reads, old=columns, new=columns)
        found = cls(run, spark, checks, shape, reads, sources, folder, audits)
        if not checks:
            return found
        read = analyzed_checks(found.session, checks, shape, sources)
        reads = read if not audits else replace(read, old=reads.old, new=reads.new)
        for name in set(reads.sources) - set(evaluated):
            opened = sources[name]
            if not (opened.is_pinned or opened.landing or opened.files):
                raise NotSupportedError(
                    f"A check reads the source {name}, a query, which could have other rows when "
                    "it is evaluated again.",
                    "Compare with new_rows or changes, or with a source that is a table or files.",
                )
        return replace(found, reads=reads)

    @property
    def session(self) -> SparkSession:
        """The session of a run with checks: ``spark_jobs.run`` sees to that."""
        assert self.spark is not None  # noqa: S101
        return self.spark

    def recording(self) -> Recording | None:
        """What tasks record, and where: the folder is there; None: nothing."""
        if not self.checks and not self.audits:
            return None
        storage = self.run.connector.storage
        path = f"{storage.root}/{self.folder}"
        make_folder(storage.filesystem, path)
        return Recording(
            storage.filesystem,
            path,
            self.run.lease,
            self.reads.old,
            self.reads.new,
            self.reads.target,
        )

    def show_source(self, name: str, kept: DataFrame, schema: StructType) -> None:
        """Let checks read the rows of a source that the statement has read."""
        if name in self.reads.sources:
            with_all_columns(kept, schema).createOrReplaceTempView(name)

    def with_sources(self, columns: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """``columns`` of sources with those that checks read."""
        read = {name.lower(): each for name, each in self.reads.sources.items()}
        merged = {
            name: each | read.pop(name.lower(), frozenset()) for name, each in columns.items()
        }
        return {**merged, **read}

    def checked(
        self,
        metrics: Metrics,
        table: TableHandle,
        planned: Sequence[PlannedFile],
        removed: Sequence[PlannedFile],
        reports: Sequence[TaskReport],
    ) -> Metrics:
        """Evaluate the checks on the changes that ``reports`` tell, of the ``planned`` files.

        ``removed`` files lose all rows unread. Returns ``metrics`` with the checks.

        Raises:
            DataError: GUARD_FAILED, unless the run is a dry one.
            CatalogError: SOURCE_UNREADABLE: files of a source that they read have changed.
        """
        if not self.checks:
            return metrics
        changed = self._changed(table, planned, removed, reports)
        frames = {CHANGES: changed.changes(), NEW_ROWS: changed.new_rows()}
        if self.reads.target:
            frames[TARGET] = changed.target()
        found: list[GuardReport] = []
        with self.run.progress.phase("check"), checked_views(self.session, frames):
            for check in self.checks:
                self.run.progress.say(f"check {check.name}")
                found.append(self._evaluated(check))
            for name in self.reads.sources:
                listed = self.sources[name].listed
                if listed is not None:
                    listed.require_unchanged()
        return replace(metrics, guards=(*metrics.guards, *found))

    def kept(
        self,
        table: TableHandle,
        planned: Sequence[PlannedFile],
        removed: Sequence[PlannedFile],
        reports: Sequence[TaskReport],
    ) -> tuple[SideOutput, ...]:
        """What is kept for other tables, with the changes for the audit; arguments as ``checked``.

        Raises:
            CommitError: RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
        """
        audit, run = self.run.guards.audit_table, self.run
        if audit is None or not self.audits:
            return self.late
        shape = self.shape
        keys = table.key_columns or shape.matched_by
        changes = self._changed(table, planned, removed, reports).changes()
        with run.progress.phase("audit"):
            frame = audit_rows(changes, shape.types, keys, are_unique=bool(table.key_columns))
            return (
                *self.late,
                keep(run, self.session, "audit", audit, frame),
            )

    def _changed(
        self,
        table: TableHandle,
        planned: Sequence[PlannedFile],
        removed: Sequence[PlannedFile],
        reports: Sequence[TaskReport],
    ) -> ChangedRows:
        return ChangedRows(
            self.session,
            self.run.connector,
            replace(self.shape, table=table),
            self.folder,
            tuple(name for report in reports for name in report.recorded),
            planned,
            removed,
        )

    def _evaluated(self, check: RowCheck) -> GuardReport:
        try:
            frame = self.session.sql(check.sql)
            rows = json_frame(frame).limit(_SHOWN_ROWS + 1).collect()
            count = len(rows)
            if count > _SHOWN_ROWS:
                count = frame.limit(_COUNTED_ROWS + 1).count()
        except (PySparkException, Py4JJavaError) as error:
            failure = translated(error)
            if failure.code is not ErrorCode.EXPRESSION_FAILED:
                raise
            return self._report(check, f"it could not be evaluated: {failure.problem}", "")
        if not count:
            return GuardReport(check.name, "no rows", "no rows", held=True)
        seen = f"{count:,}" if count <= _COUNTED_ROWS else f"more than {_COUNTED_ROWS:,}"
        noun = "row" if count == 1 else "rows"
        return self._report(check, f"{seen} {noun}", _shown(frame, rows))

    def _report(self, check: RowCheck, seen: str, shown: str) -> GuardReport:
        if not self.run.dry_run:
            found = f"{seen}; the first: {shown}" if shown else seen
            raise DataError(
                ErrorCode.GUARD_FAILED,
                f"check {check.name}: expected no rows, found {found}"
                if shown
                else f"check {check.name}: {found}",
                "Correct the source or the statement, or the check if the rows are right. Nothing "
                "was published.",
            )
        return GuardReport(check.name, "no rows", seen, held=False)


def _shown(frame: DataFrame, rows: Sequence[Any]) -> str:
    """The first rows as JSON, one after another."""
    names = frame.columns
    texts = (
        json.dumps(dict(zip(names, map(json_value, row), strict=True)), ensure_ascii=False)
        for row in rows[:_SHOWN_ROWS]
    )
    return excerpt(", ".join(texts), _LONGEST)
