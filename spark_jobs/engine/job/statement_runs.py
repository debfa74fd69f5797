"""The runs of a request's statement, one for each attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from pyspark.sql import SparkSession

from spark_jobs.contract.approval import Ticket
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import ClearingStatement, InsertIntoSpec, InsertStatement
from spark_jobs.contract.marks import mark_names
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.progress_note import catalog_mark
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import JobRequest, Source, TableName, TableSource
from spark_jobs.contract.row_preview import PreviewPlace
from spark_jobs.contract.statements import MergeSpec, RowStatement, Statement
from spark_jobs.engine.analysis.partition_specs import PartitionSpecs, SparkConstants
from spark_jobs.engine.analysis.schema_evolution import require_same_columns, schema_changes
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.events.plain_clauses import plain_clauses
from spark_jobs.engine.insert.clearing_run import ClearingRun
from spark_jobs.engine.insert.overwrite_run import OverwriteRun
from spark_jobs.engine.merge.merge_run import MergeRun
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.runtime.permission import Fence, LastLook
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.source.open_source import OpenSource
from spark_jobs.engine.source.pinned_tables import FormerStates
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.sources import Sources
from spark_jobs.engine.write.idle_run import IdleRun
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.spi.connector import Connector


class _Common(TypedDict):
    """What ``StatementRun`` takes besides the statement."""

    connector: Connector
    table: TableHandle
    operation: Operation
    options: JobOptions
    scratch: str
    progress: Progress
    last_look: LastLook
    fence: Fence
    attempt: int
    dry_run: bool
    guards: Guards
    approved: Ticket | None
    plan_only: bool
    side_folder: str
    preview: PreviewPlace | None


class _Reading(TypedDict):
    """What runs that read sources take besides."""

    spark: SparkSession
    sources: Sources
    moment: StatementTime
    reads_itself: bool


@dataclass(frozen=True)
class StatementRuns:
    """Makes the runs of ``request``, which all have the same current time.

    ``spark`` may be None for TRUNCATE and DROP PARTITION. ``answers`` is as in ``LastLook``.
    """

    request: JobRequest
    spark: SparkSession | None
    connector: Connector
    progress: Progress
    answers: Path | None
    limits: PlanLimits
    access: SourceAccess = field(default_factory=SourceAccess)

    @contextmanager
    def opened(
        self,
        table: TableHandle,
        scratch: str,
        attempt: int = 1,
        ended: Iterable[str] = (),
        side_folder: str = "",
    ) -> Iterator[MergeRun | OverwriteRun | ClearingRun | IdleRun]:
        """The run of an attempt on ``table``; its sources are open within the block.

        ``ended`` are earlier operations of the request's task run. ``side_folder`` is for what it
        leaves for other tables.
        """
        common = self._common(table, scratch, attempt, frozenset(ended), side_folder)
        statement = self.request.statement
        if isinstance(statement, ClearingStatement):
            specs = self._specs(table)
            yield ClearingRun(spec=statement, specs=specs, spark=self.spark, **common)
            return
        assert self.spark is not None  # noqa: S101 - see spark_jobs.run
        request, progress, moment = self.request, self.progress, self._moment
        sources = Sources(
            self.spark,
            self.connector,
            request,
            table,
            scratch,
            progress,
            moment,
            former=self._former,
            access=self.access,
        )
        try:
            reading = _Reading(
                spark=self.spark,
                sources=sources,
                moment=moment,
                reads_itself=_is_among(request.table, request.sources),
            )
            with progress.phase("source"):
                sources.choose()
            if sources.has_nothing_new:
                yield IdleRun(spec=statement, **reading, **common)
                return
            with progress.phase("analyze"):
                sources.open()
                statement = self._plain(statement, table, sources)
                common["table"] = self._evolved(statement, table, sources)
            with sources.explaining():
                if isinstance(statement, InsertStatement):
                    yield OverwriteRun(spec=statement, **reading, **common)
                else:
                    row_statement = cast("RowStatement", statement)
                    yield MergeRun(spec=row_statement, limits=self.limits, **reading, **common)
        finally:
            sources.close()

    def inserting(
        self,
        table: TableHandle,
        scratch: str,
        rows: DataFrame,
        properties: Mapping[str, str],
        attempt: int,
    ) -> OverwriteRun:
        """The run of an attempt of an INSERT of ``rows``, whatever the request's source has.

        ``properties`` are more ones of its snapshot.
        """
        assert self.spark is not None  # noqa: S101 - rows are Spark's
        request, spec = self.request, cast("InsertIntoSpec", self.request.statement)
        sources = Sources(
            self.spark, self.connector, request, table, scratch, self.progress, self._moment
        )
        sources.add(spec.source, OpenSource(rows, is_pinned=True))
        common = self._common(table, scratch, attempt)
        told = {**common["operation"].properties, **properties}
        common["operation"] = replace(common["operation"], properties=told)
        return OverwriteRun(
            spec=spec, spark=self.spark, sources=sources, moment=self._moment, **common
        )

    def _plain(self, spec: Statement, table: TableHandle, sources: Sources) -> Statement:
        """The statement; one that applies change events has assignments in place of ``*``."""
        if not isinstance(spec, MergeSpec):
            return spec
        source = next(each for each in self.request.sources if each.name == spec.source)
        if not isinstance(source, CdcSource):
            return spec
        return plain_clauses(spec, source, table, sources[spec.source].frame.schema)

    def _evolved(self, spec: Statement, table: TableHandle, sources: Sources) -> TableHandle:
        """The table with the columns that schema evolution gives it."""
        guards = self.request.guards
        if not isinstance(spec, MergeSpec | InsertStatement):
            return table
        schema = sources[spec.source].frame.schema
        if guards is not None and guards.same_columns:
            require_same_columns(spec, table, schema)
        if not spec.schema_evolution:
            return table
        metadata, widens = self.connector.metadata, bool(self.request.options.type_widening)
        changes = schema_changes(spec, table, schema, widens=widens)
        if not changes:
            return table
        metadata.require_writable(table)
        self.progress.say(f"schema: {', '.join(map(str, changes))}")
        return metadata.evolved(table, changes)

    @cached_property
    def _former(self) -> FormerStates:
        return {}

    @cached_property
    def _moment(self) -> StatementTime:
        assert self.spark is not None  # noqa: S101 - see spark_jobs.run
        return StatementTime(self.spark)

    def _common(
        self,
        table: TableHandle,
        scratch: str,
        attempt: int,
        ended: frozenset[str] = frozenset(),
        side_folder: str = "",
    ) -> _Common:
        request = self.request
        properties = operation_properties(request, table.snapshot_id)
        marks = frozenset(mark_names(request))
        operation = Operation(request.operation_id, request.digest(), properties, ended, marks)
        return _Common(
            connector=self.connector,
            table=table,
            operation=operation,
            options=request.options,
            scratch=scratch,
            progress=self.progress,
            last_look=LastLook(request.operation_id, self.answers),
            fence=Fence.of(request, self.connector.storage),
            attempt=attempt,
            dry_run=request.dry_run,
            guards=request.guards or Guards(),
            approved=request.approved,
            plan_only=request.plan_only,
            side_folder=side_folder,
            preview=preview_place(request),
        )

    def _specs(self, table: TableHandle) -> PartitionSpecs:
        if self.spark is None:
            return PartitionSpecs(table, None)
        return PartitionSpecs(table, SparkConstants(self.spark, table, self._moment))


def preview_place(request: JobRequest) -> PreviewPlace | None:
    """What a request keeps of the rows that it would change; None: it keeps none."""
    rows = request.options.preview_rows
    if not rows or not request.dry_run or request.plan_only:
        return None
    table = str(request.table)
    return PreviewPlace(request.operation_id, table, catalog_mark(request.catalog), rows)


def _is_among(target: TableName, sources: Sequence[Source]) -> bool:
    """Whether a source may read the target itself, under any name."""
    tables = (each for each in sources if isinstance(each, TableSource))
    return any(target.may_be(each.table) for each in tables if each.connection is None)
