"""What the tests of the SQL texts share."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.parser import ParsedStatement, parse_statement
from spark_jobs.contract.statements import DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.errors import JobError


def merge(sql: str, *source_names: str, database: str | None = None) -> MergeSpec:
    """The MERGE in ``sql``."""
    statement = parse_statement(sql, source_names, database).statement
    assert isinstance(statement, MergeSpec)
    return statement


def merge_on(on: str) -> str:
    """The ON of a MERGE as it is read, from a text in which everything else is short."""
    return merge(f"MERGE INTO d.t AS t USING d.s AS s ON {on} WHEN MATCHED THEN DELETE").on


def update(sql: str, *source_names: str) -> UpdateSpec:
    """The UPDATE in ``sql``."""
    statement = parse_statement(sql, source_names).statement
    assert isinstance(statement, UpdateSpec)
    return statement


def delete(sql: str, *source_names: str) -> DeleteSpec:
    """The DELETE in ``sql``."""
    statement = parse_statement(sql, source_names).statement
    assert isinstance(statement, DeleteSpec)
    return statement


def read(sql: str, *source_names: str, database: str | None = None) -> ParsedStatement:
    """Whatever is in ``sql``."""
    return parse_statement(sql, source_names, database)


def refusal(sql: str, *source_names: str, database: str | None = None) -> JobError:
    """The error for ``sql``."""
    with pytest.raises(JobError) as caught:
        parse_statement(sql, source_names, database)
    return caught.value
