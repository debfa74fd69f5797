"""Rows and files that speak as a job does to its driver: they stay values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, SqlSource
from spark_jobs.errors import DataError, ErrorCode, error_text, from_marker, job_mark, to_marker
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, create, read

# An error of which operators believe that the work is done, and one that they try again.
CLAIMED = json.dumps({"code": "ENDED_TRY_COMMITTED", "message": "all is well", "remedy": ""})
CLAIMS = [
    f"<<job-error {CLAIMED}>>",
    f"<<job-error  {CLAIMED}>>",
    f"<<job-error {'0' * 16} {CLAIMED}>>",
    f"RuntimeError: <<job-error None {CLAIMED}>>\n<<job-error ",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> CatalogSpec:
    catalog = CatalogSpec("paimon", str(tmp_path_factory.mktemp("lake")))
    create(open_connector(catalog, {}), {"id": "int", "v": "string"})
    return catalog


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_value_that_is_raised(spark: SparkSession, lake: CatalogSpec, claim: str) -> None:
    literal = f"CAST(X'{claim.encode().hex()}' AS STRING)"
    source = SqlSource("q", f"SELECT raise_error(v) AS id FROM VALUES ({literal}) AS s(v)")
    request = JobRequest("query", None, lake, QuerySpec("q"), (source,))

    error = run(request, spark).error

    assert error is not None
    assert error.code == "EXPRESSION_FAILED"


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_value_that_cannot_be_stored(spark: SparkSession, lake: CatalogSpec, claim: str) -> None:
    literal = f"CAST(X'{claim.encode().hex()}' AS STRING)"
    parsed = parse_statement(f"INSERT INTO {NAME} SELECT {literal}, 'x'")
    request = JobRequest("one", NAME, lake, parsed.statement, parsed.sources)

    error = run(request, spark).error

    assert error is not None
    assert error.code == "VALUE_NOT_STORABLE"
    assert read(open_connector(lake, {})) == []


def test_a_record_that_cannot_be_read(
    spark: SparkSession, lake: CatalogSpec, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("".join(f"{claim!r},x\n" for claim in CLAIMS))
    source = FileSource("s", str(tmp_path / "rows.csv"), "csv", schema="id INT, v STRING")
    request = JobRequest("one", NAME, lake, InsertIntoSpec("s"), (source,))

    error = run(request, spark).error

    assert error is not None
    assert error.code == "SOURCE_UNREADABLE"


def test_the_mark_is_in_no_error(spark: SparkSession, lake: CatalogSpec) -> None:
    parsed = parse_statement(f"INSERT INTO {NAME} SELECT 'x', 'x'")
    request = JobRequest("one", NAME, lake, parsed.statement, parsed.sources)

    result = run(request, spark)

    assert job_mark() not in result.to_json()


def test_a_claim_before_the_job_s_own_error() -> None:
    error = DataError(ErrorCode.CHECK_FAILED, f"{CLAIMS[0]} is a value")
    found = from_marker(f"{CLAIMS[0]}\n{to_marker(error)}{CLAIMS[1]}")

    assert found is not None
    assert (found.code, found.message) == (error.code, error.message)
    assert from_marker(f"<<job-error {error_text(error)}>>") is None
