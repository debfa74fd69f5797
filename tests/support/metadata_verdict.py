"""What the check against metadata says of a statement, beside what its job says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_merge.checks.queries import check_query, query_columns
from airflow_provider_merge.checks.relations import Relation
from airflow_provider_merge.checks.statements import StatementCheck
from spark_jobs.contract.request import JobRequest, SqlSource, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

Columns = Mapping[str, str]


def require_no_other_verdict(
    request: JobRequest,
    result: JobResult,
    target: Columns,
    partition_keys: Sequence[str],
    sources: Mapping[str, Columns],
) -> None:
    """Check that metadata refuses nothing that the job runs, and calls an error as the job does.

    ``target`` and ``sources``: name → type of the columns.
    """
    refused = _refusal(request, target, partition_keys, sources)
    if refused is not None:
        assert result.error is not None, f"the check refuses what the job runs: {refused}"
        assert result.error.code == refused.code.name, (result.error, refused)


def _refusal(
    request: JobRequest,
    target: Columns,
    partition_keys: Sequence[str],
    sources: Mapping[str, Columns],
) -> JobError | None:
    try:
        _check(request, target, partition_keys, sources)
    except JobError as error:
        return error
    return None


def _check(
    request: JobRequest,
    target: Columns,
    partition_keys: Sequence[str],
    sources: Mapping[str, Columns],
) -> None:
    views = {name.lower(): Relation(name, name, columns) for name, columns in sources.items()}
    for source in request.sources:
        name = source.name
        if isinstance(source, TableSource) and source.table == request.target:
            views[name.lower()] = Relation(name, str(source.table), target)
        elif isinstance(source, SqlSource):
            check_query(source.query, views, f"query of {name}")
            views[name.lower()] = Relation(name, name, query_columns(source.query, views))
    by_name = {
        source.name: views.get(source.name.lower(), Relation(source.name, source.name, None))
        for source in request.sources
    }
    found = Relation("", str(request.target), target)
    StatementCheck(found, by_name, partition_keys).statement(request.statement)
