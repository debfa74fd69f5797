"""A query from start to end: it reads tables at their latest snapshots and changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from spark_jobs.contract.query import MOST_BYTES, QueryColumn, QueryReport, QuerySpec
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.engine.analysis.opaque_columns import opaque_types, refuse_opaque
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.analysis.text_rules import require_plain_texts
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.query.json_values import json_frame, json_value
from spark_jobs.engine.query.query_output import query_output
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.surroundings import require_utf8_names
from spark_jobs.engine.source.sources import Sources
from spark_jobs.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.engine.runtime.lease import Lease


@dataclass(frozen=True, slots=True)
class QueryJob(RequestJob):
    """A request for rows, on an open catalog and session; every try reads anew."""

    statements: ClassVar[tuple[type, ...]] = (QuerySpec,)

    @property
    def spec(self) -> QuerySpec:
        """The statement."""
        return cast("QuerySpec", self.request.statement)

    def done(self) -> JobResult:
        """Run the query."""
        log = self.log
        require_utf8_names(self.spark)
        require_plain_texts(self.spark, self.request)
        fence = log.enter(self.request)
        scratch = log.begin(self.request.operation_id, fence.try_number)
        lease = log.lease(scratch)
        sources = Sources(
            self.session,
            self.connector,
            self.request,
            None,
            scratch,
            self.progress,
            StatementTime(self.session),
            access=self.access,
        )
        try:
            with self.progress.phase("analyze"):
                sources.open()
            with sources.explaining(), self.progress.phase("source"):
                sources.land()
                report = self._report(sources[self.spec.source].frame, lease)
                sources.require_unchanged()
        finally:
            sources.close()
            with self.progress.phase("clean"):
                log.end(scratch)
        metrics = Metrics(
            source_rows=report.row_count, sources=sources.metrics, seconds=self.progress.seconds
        )
        return replace(OperationLog.ended(self.request, "unchanged", metrics), query=report)

    def _report(self, frame: DataFrame, lease: Lease) -> QueryReport:
        refuse_opaque(opaque_types(frame.schema), frame.columns, self.spec.source)
        columns = tuple(QueryColumn(f.name, f.dataType.simpleString()) for f in frame.schema)
        output = query_output(self.session, self.connector, self.spec, self.request.operation_id)
        if output is not None:
            return QueryReport(columns, output.write(frame, lease), location=output.location)
        limit = self.spec.limit
        # One more row tells whether there are more.
        collected = json_frame(frame).limit(limit + 1).collect()
        rows = tuple(tuple(map(json_value, row)) for row in collected[:limit])
        size = len(json.dumps(rows, ensure_ascii=False).encode())
        if size > MOST_BYTES:
            raise DataError(
                ErrorCode.RESULT_TOO_LARGE,
                f"limit: {len(rows):,} rows of the query have {size:,} bytes as JSON; a result can "
                f"hold {MOST_BYTES:,}",
                "Select fewer columns or rows, or write the rows to files, with output_path.",
            )
        return QueryReport(columns, len(rows), rows, truncated=len(collected) > limit)
