"""The checks and the audit of a run: analysed before it reads data, ready before it publishes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from spark_jobs.contract.operation_files import new_changes_folder
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import GuardReport
from spark_jobs.contract.row_checks import CHANGES, NEW_ROWS, TARGET, RowCheck
from spark_jobs.contract.side_outputs import SideOutput
from spark_jobs.engine.changes.audit_rows import audit_rows, require_audit_table
from spark_jobs.engine.changes.changed_rows import ChangedRows, ChangeShape, Unpublished
from spark_jobs.engine.changes.check_analysis import (
    NOTHING_READ,
    CheckedReads,
    analyzed_checks,
    checked_views,
    passes_rows_on,
    reading_changes,
    views_named,
)
from spark_jobs.engine.changes.kept_rows import keep
from spark_jobs.engine.changes.row_previews import RowPreviews
from spark_jobs.engine.query.json_values import json_frame, json_value
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.source.subqueries import with_all_columns
from spark_jobs.engine.write.guarding import NO_CHECKS, CheckReports
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.errors import ErrorCode, NotSupportedError, excerpt
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.write.statement_run import StatementRun

_SHOWN_ROWS: Final = 10
_COUNTED_ROWS: Final = 10_000
_NAMED_CHECKS: Final = 8
# Characters of the rows of all checks in an error.
_LONGEST: Final = 4_000


@dataclass(frozen=True, slots=True)
class RowChecking:
    """The checks of one ``run``, which read ``reads``; ``folder`` has what is recorded for them.

    ``audits``: all changes are kept for another table, too; ``late``: what is kept already. Without
    ``checks``, audit and, in a dry run, a preview, nothing is recorded, and nothing done.
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
        reads_all = audits or run.preview is not None
        reads = reading_changes(shape) if reads_all else NOTHING_READ
        checking = cls(run, spark, checks, shape, reads, sources, folder, audits)
        if not checks:
            return checking
        reads = analyzed_checks(checking.session, checks, shape, sources)
        for name in set(reads.sources) - set(evaluated):
            opened = sources[name]
            if not (opened.is_pinned or opened.landing or opened.files or opened.is_outside):
                raise NotSupportedError(
                    f"A check reads the source {name}, a query, which could have other rows when "
                    "it is evaluated again.",
                    "Compare with new_rows or changes, or with a source that is a table or files.",
                )
        return replace(checking, reads=reads.joined(checking.reads))

    @property
    def session(self) -> SparkSession:
        """The session of a run with checks: ``spark_jobs.run`` sees to that."""
        assert self.spark is not None  # noqa: S101
        return self.spark

    def recording(self) -> Recording | None:
        """What tasks record, and where: the folder is there; None: nothing."""
        if not (self.checks or self.audits) and self.run.preview is None:
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
            self.run.preview.rows if self.run.preview and not self.checks else None,
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

    def found(self, work: Unpublished) -> CheckReports:
        """Evaluate the checks on what the run has done, and keep rows of it for a preview.

        Raises:
            CatalogError: SOURCE_UNREADABLE: files of a source that they read have changed.
        """
        preview = self.run.preview
        if not self.checks and preview is None:
            return NO_CHECKS
        changed = self._changed(work)
        if preview is not None:
            with self.run.progress.phase("check"):
                previews = RowPreviews(self.run.connector.storage, preview, changed.shape)
                previews.store(changed.changes() if changed.has_any else None)
        return _reports(self._all_evaluated(changed)) if self.checks else NO_CHECKS

    def kept(self, work: Unpublished) -> tuple[SideOutput, ...]:
        """What is kept for other tables, with the changes of the run for the audit.

        Raises:
            CommitError: RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
        """
        audit, run = self.run.guards.audit_table, self.run
        if audit is None or not self.audits:
            return self.late
        keys = work.table.key_columns or self.shape.matched_by
        with run.progress.phase("audit"):
            frame = audit_rows(
                self._changed(work).changes(),
                self.shape.types,
                keys,
                are_unique=bool(work.table.key_columns),
            )
            return (*self.late, keep(run, self.session, "audit", audit, frame))

    def _changed(self, work: Unpublished) -> ChangedRows:
        shape = replace(self.shape, table=work.table)
        return ChangedRows(self.session, self.run.connector, shape, self.folder, work)

    def _all_evaluated(self, changed: ChangedRows) -> list[_Found]:
        named = views_named(self.checks)
        views = {CHANGES: changed.changes, NEW_ROWS: changed.new_rows}
        frames = {name: view() for name, view in views.items() if name in named}
        if self.reads.target:
            frames[TARGET] = changed.target()
        findings: list[_Found] = []
        with self.run.progress.phase("check"), checked_views(self.session, frames):
            for check in self.checks:
                self.run.progress.say(f"check {check.name}")
                findings.append(self._evaluated(check))
            for name in self.reads.sources:
                listed = self.sources[name].listed
                if listed is not None:
                    listed.require_unchanged()
        return findings

    def _evaluated(self, check: RowCheck) -> _Found:
        try:
            frame = self.session.sql(check.sql)
            rows = self._first_rows(frame)
            count = len(rows)
            if count > _SHOWN_ROWS:
                count = frame.limit(_COUNTED_ROWS + 1).count()
        except (PySparkException, Py4JJavaError) as error:
            failure = translated(error)
            if failure.code is not ErrorCode.EXPRESSION_FAILED:
                raise
            seen = f"it could not be evaluated: {failure.problem}"
            return _Found(GuardReport(check.name, "no rows", seen, held=False))
        if not count:
            return _Found(GuardReport(check.name, "no rows", "no rows", held=True))
        seen = f"{count:,}" if count <= _COUNTED_ROWS else f"more than {_COUNTED_ROWS:,}"
        noun = "row" if count == 1 else "rows"
        report = GuardReport(check.name, "no rows", f"{seen} {noun}", held=False)
        return _Found(report, _shown(frame, rows))

    def _first_rows(self, frame: DataFrame) -> list[Row]:
        """The first rows; a query that holds is not asked for the values of its columns."""
        plan = frame._jdf.queryExecution().analyzed()
        if passes_rows_on(self.session, plan) and not frame.select(F.lit(1)).limit(1).collect():
            return []
        return json_frame(frame).limit(_SHOWN_ROWS + 1).collect()


@dataclass(frozen=True, slots=True)
class _Found:
    """What became of a check; ``rows`` are the first that it found."""

    report: GuardReport
    rows: str = ""

    def sentence(self, longest: int) -> str:
        """What an error says of it, with so many characters of its rows."""
        name, seen = self.report.name, self.report.seen
        if not self.rows:
            return f"check {name}: {seen}"
        shown = excerpt(self.rows, longest)
        return f"check {name}: expected no rows, found {seen}; the first: {shown}"


def _shown(frame: DataFrame, rows: Sequence[Any]) -> str:
    """The first rows as JSON, one after another."""
    names = frame.columns
    texts = (
        json.dumps(dict(zip(names, map(json_value, row), strict=True)), ensure_ascii=False)
        for row in rows[:_SHOWN_ROWS]
    )
    return ", ".join(texts)


def _reports(found: Sequence[_Found]) -> CheckReports:
    """All of the reports, and a sentence for each of the first checks that failed."""
    failed = [each for each in found if not each.report.held]
    most = _LONGEST // max(1, min(len(failed), _NAMED_CHECKS))
    failures = [each.sentence(most) for each in failed[:_NAMED_CHECKS]]
    if len(failed) > _NAMED_CHECKS:
        failures.append(f"and {len(failed) - _NAMED_CHECKS} other checks")
    return CheckReports(tuple(each.report for each in found), tuple(failures))
