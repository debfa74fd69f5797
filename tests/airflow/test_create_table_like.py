"""CreateTableOperator with the columns of a table or of a source."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.sources import file_source, sql_source
from spark_jobs.contract.request import FileSource, SqlSource
from spark_jobs.contract.source_names import MERGE_SOURCE
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import JobError

FILES = file_source("/landed/{{ ds }}", format="parquet")


def operator(**parameters: Any) -> CreateTableOperator:
    return CreateTableOperator(task_id="create", target="d.t", **parameters)


def test_a_table_needs_no_session() -> None:
    made = operator(like="d.other")

    assert made.statement() == CreateTableSpec(like="`d`.`other`")
    assert (made.request_sources(), made.needs_session()) == ((), False)


def test_a_source_needs_one() -> None:
    made = operator(like=file_source("/landed", format="csv", schema="id INT"), primary_key=["id"])

    assert made.statement() == CreateTableSpec(source=MERGE_SOURCE, primary_key=("id",))
    (source,) = made.request_sources()
    assert isinstance(source, FileSource)
    assert (source.name, source.path, made.needs_session()) == (MERGE_SOURCE, "/landed", True)
    made.check_request()


def test_a_query_reads_its_own_sources() -> None:
    query = sql_source("SELECT id FROM landed", sources={"landed": FILES})

    first, second = operator(like=query).request_sources()

    assert (first.name, second.name) == ("landed", MERGE_SOURCE)
    assert isinstance(second, SqlSource)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"like": {"kind": "fiel", "path": "/a"}}, "like.kind: 'fiel' is not one of"),
        ({"like": {"kind": "file", "path": "/a"}}, "like.format: missing"),
        ({"like": FILES, "columns": [column("a", "INT")]}, "columns: cannot be combined with like"),
        ({"like": "d.o", "columns": [column("a", "INT")]}, "columns: cannot be combined with like"),
        ({"like": "d.o", "primary_key": ["a"]}, "primary_key: cannot be combined with like"),
        ({"like": "a.b.c"}, "like: 'a.b.c' names a catalog"),
    ],
)
def test_wrong_input_is_named_when_the_dag_is_parsed(
    parameters: dict[str, Any], problem: str
) -> None:
    with pytest.raises(JobError) as refused:
        operator(**parameters)
    assert problem in str(refused.value)
