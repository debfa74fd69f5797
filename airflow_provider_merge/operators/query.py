"""``QueryOperator``: read rows of lakehouse tables, into XCom or files, or to check them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow_provider_merge.checks.lines import on_line
from airflow_provider_merge.checks.plain_texts import require_plain
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.hooks.source_connections import of_connection
from airflow_provider_merge.links import QuarantineLink, SparkApplicationLink
from airflow_provider_merge.operators._shared.compilers_choice import note_for_next
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.operators._shared.inlets import announce_sources
from airflow_provider_merge.operators._shared.measured import measuring
from airflow_provider_merge.operators._shared.operation_id import task_operation_id, task_origin
from airflow_provider_merge.operators._shared.outcome import forget_rows, job_outcome
from airflow_provider_merge.operators._shared.pages import pages_of_result
from airflow_provider_merge.operators._shared.query_checks import ALL_TRUE, CHECKS, check_rows
from airflow_provider_merge.operators._shared.results import query_line, query_value
from airflow_provider_merge.operators._shared.source_parameters import (
    require_read,
    to_named_sources,
)
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.sql_parameter import SqlOperator, of_parameter
from airflow_provider_merge.operators._shared.timeouts import telling_timeouts
from airflow_provider_merge.operators._shared.values import text, whole_number
from airflow_provider_merge.sql.parser import parse_query
from airflow_provider_merge.sql.select import QUERY_SOURCE
from airflow_provider_merge.submit.surroundings import shares_local_files
from airflow_provider_merge.task_errors import task_failure
from airflow_provider_merge.templates import (
    chosen_later,
    has_template,
    is_template,
    when_rendered,
    with_placeholders,
)
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import ROWS, OutputFormat, QueryReport, QuerySpec
from spark_jobs.contract.request import JobRequest, Source
from spark_jobs.contract.secret_names import holds_secret
from spark_jobs.errors import ErrorCode, InternalError, JobError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class QueryOperator(SqlOperator, SparkJobOperator):
    """Reads rows with one SELECT, and returns them as XCom or writes them to files.

    Each table is read at its latest snapshot. Nothing is committed and no asset event is sent; a
    retry runs the query again. What has no template is checked when the DAG is parsed; everything
    is checked before Spark starts. Guide: docs/operators/query.md.

    :param sql: the query as SQL text, or the path of a ``.sql`` file
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param limit: the maximum number of rows in XCom, at most 10,000; default: 100
    :param output_path: a folder, absolute path or URI: all rows go to files in a new folder below
        it, instead of XCom
    :param output_format: of these files: ``parquet`` (default) or ``csv``
    :param check: fail unless the rows are as they should be: ``all_true``, one row in which every
        value is TRUE; ``no_rows``
    :param session_time_zone: how Spark reads and writes timestamps without an offset
    """

    template_fields: Sequence[str] = (
        *SparkJobOperator.template_fields,
        "sql",
        "sources",
        "database",
        "limit",
        "output_path",
        "output_format",
        "check",
        "session_time_zone",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **SparkJobOperator.template_fields_renderers,
        "sql": "sql",
        "sources": "json",
    }
    operator_extra_links = (QuarantineLink(), SparkApplicationLink())

    def __init__(
        self,
        *,
        sql: str,
        sources: Mapping[str, Any] | None = None,
        database: str | None = None,
        limit: int | str | None = None,
        output_path: str | None = None,
        output_format: str | None = None,
        check: str | None = None,
        session_time_zone: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.sources = sources
        self.database = database
        self.limit = limit
        self.output_path = output_path
        self.output_format = output_format
        self.check = check
        self.session_time_zone = session_time_zone
        self.check_parameters()

    @when_rendered
    @measuring
    @telling_timeouts
    def execute(self, context: Context) -> dict[str, Any]:
        """Run the query and return what it found."""
        started = time.monotonic()
        try:
            hook = catalog_hook(self.catalog_conn_id)
            report = self._report(self._request(context, hook), hook, context)
            self.log.info("%s", query_line(report, time.monotonic() - started))
            self.require_rows(report)
        except JobError as error:
            raise task_failure(error, context, self.sql_file) from None
        return query_value(task_operation_id(context), report)

    @when_rendered
    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any] | None:
        """Inputs for OpenLineage, from rendered parameters."""
        from airflow_provider_merge.lineage.facets import query_lineage

        return query_lineage(self.catalog_conn_id, self._query()[1], self.sql or "")

    def require_rows(self, report: QueryReport) -> None:
        """Check what the query found; raises JobError (CHECK_FAILED)."""
        check_rows(self._check(), report)

    def _report(self, request: JobRequest, hook: CatalogHook, context: Context) -> QueryReport:
        self.measured.expect(request)
        self.require_valid(request, hook)
        ended = self.submit(request, hook, context)
        result = job_outcome(request, hook, ended.failure, self.measured.left)
        forget_rows(request, hook)
        note_for_next(context, ended.had_both_compilers, [result])
        self.pages |= pages_of_result(hook, None, result)
        if result.query is None:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR, "the query's result has no rows", "Report this."
            )
        return result.query

    def require_valid(self, request: JobRequest, hook: CatalogHook) -> None:
        """Check the query's text, and what metadata tells of it; raises JobError with its line."""
        check = MetadataCheck(hook, shares_local_files(self.spark_settings()))
        try:
            require_plain(request)
            check.require_sources(request.sources)
        except JobError as error:
            raise on_line(error, str(self.sql), self.sql_label()) from None

    def _request(self, context: Context, hook: CatalogHook) -> JobRequest:
        name, sources = self._query()
        options = JobOptions()
        request = JobRequest(
            operation_id=task_operation_id(context),
            target=None,
            catalog=hook.catalog_spec(),
            statement=self._spec(name),
            sources=sources,
            options=JobOptions(self.session_time_zone or options.session_time_zone),
            origin=task_origin(context, self.retries or 0),
            text_limits=configured_limits(),
        )
        return of_connection(request, hook)

    def _query(self) -> tuple[str, tuple[Source, ...]]:
        """The name of the source that is the query, and all sources, from rendered parameters."""
        if not isinstance(self.sql, str):
            raise invalid("sql", "expected text", "Write a SELECT.")
        given = to_named_sources(self.sources)
        with of_parameter(self.sql_label()):
            name, own = parse_query(self.sql, tuple(self.sources or ()), self.database)
        require_read(self.sources, [self.sql])
        return name, (*given, *own)

    def _spec(self, source: str) -> QuerySpec:
        """The statement, of the parameters that are known."""
        most = whole_number("limit", _known(self.limit))
        output_path = text("output_path", _known(self.output_path))
        format_ = text("output_format", _known(self.output_format)) or "parquet"
        if output_path and holds_secret(output_path):
            remedy = "Give access by the catalog connection."
            raise invalid("output_path", "holds a secret, which would be seen there", remedy)
        return QuerySpec(
            source,
            limit=ROWS if most is None else most,
            output_path=output_path,
            output_format=cast("OutputFormat", format_),
        )

    def _check(self) -> str | None:
        check = text("check", self.check)
        if check is not None and check not in CHECKS:
            raise not_among("check", check, CHECKS)
        if check == ALL_TRUE and self.output_path:
            raise invalid("check", "the rows in files are not checked", "Leave out one of them.")
        return check

    def check_parameters(self) -> None:
        """Check what has no template when the DAG is parsed.

        Raises:
            RequestError: names the parameter, and line and column of the text.
            NotSupportedError: the query is not supported.
        """
        self._spec(QUERY_SOURCE)
        if not is_template(self.check):
            self._check()
        if not chosen_later({"sources": self.sources or {}}):
            announce_sources(self, to_named_sources(with_placeholders(self.sources)))
        if not (self.reads_later() or has_template([self.database, self.sources])):
            announce_sources(self, self._query()[1])
        elif not is_template(self.sources):
            self._announce_plain_names()

    def _announce_plain_names(self) -> None:
        """Announce the tables whose names in the text are no templates."""
        readable = self.readable_text()
        # An error is that of the rendered text.
        with suppress(JobError):
            if readable is not None:
                text, database = readable
                announce_sources(self, parse_query(text, tuple(self.sources or ()), database)[1])


def _known(value: Any) -> Any:
    """The value of a parameter; None for a template, which is rendered later."""
    return None if is_template(value) else value
