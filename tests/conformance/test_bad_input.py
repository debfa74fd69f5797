"""Targets, warehouses and sources that are not there: a clear error, and nothing has happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.request import (
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.statements import Assignment, MergeCase, MergeSpec, UpdateAction
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import CatalogError, ErrorCode
from tests.conformance.behaviour import Behaviour, Failure, delete, fails, matched
from tests.conformance.check import check_failure, check_untouched, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import HARNESSES
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS

pytestmark = pytest.mark.slow

DELETE_101 = Behaviour("", "VALUES (101) AS s(id)", (matched(delete()),))


@pytest.fixture(params=HARNESSES)
def each_harness(request: pytest.FixtureRequest, make_table: MakeTable) -> Harness:
    return make_table(request.param, ORDERS, partitioned=True)


@pytest.fixture
def harness(make_table: MakeTable) -> Harness:
    """A table for what the engine refuses by itself, whatever the connector."""
    return make_table("folder", ORDERS, partitioned=True)


def assert_fails(harness: Harness, request: JobRequest, failure: Failure) -> None:
    before = harness.state()

    result = Job(request, harness.spark, harness.open()).run()

    check_failure(result, failure)
    check_untouched(before, harness.state())


def with_source(harness: Harness, source: Source) -> JobRequest:
    return replace(request_of(DELETE_101, harness), sources=(source,))


def test_target_that_does_not_exist(each_harness: Harness) -> None:
    request = replace(request_of(DELETE_101, each_harness), target=TableName("db", "nothing"))

    assert_fails(each_harness, request, fails(ErrorCode.TABLE_NOT_FOUND, "db.nothing"))


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_source_path_without_files(harness: Harness, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    path = str(tmp_path / folder)

    assert_fails(
        harness,
        with_source(harness, FileSource("s", path, "parquet")),
        fails(ErrorCode.SOURCE_NOT_FOUND, "source s", path),
    )


def test_source_path_without_files_but_with_a_schema(harness: Harness, tmp_path: Path) -> None:
    source = FileSource("s", str(tmp_path / "missing"), "json", schema="id BIGINT")

    assert_fails(
        harness, with_source(harness, source), fails(ErrorCode.SOURCE_NOT_FOUND, "source s")
    )


def test_source_file_that_is_damaged(harness: Harness, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    path.write_bytes(b"PAR1 no parquet PAR1")
    source = FileSource("s", str(path), "parquet", schema="id BIGINT")

    before = harness.state()
    result = Job(with_source(harness, source), harness.spark, harness.open()).run()

    assert result.error is not None
    # Spark 3.5 itself does not say which file it is.
    assert harness.spark.version < "4" or "damaged.parquet" in result.error.message
    check_untouched(before, harness.state())


def test_source_of_a_format_that_does_not_exist(harness: Harness, tmp_path: Path) -> None:
    assert_fails(
        harness,
        with_source(harness, FileSource("s", str(tmp_path), "no-such-format")),
        fails(ErrorCode.SOURCE_UNREADABLE, "source s", "no-such-format"),
    )


def test_source_folders_that_contradict_each_other(harness: Harness, tmp_path: Path) -> None:
    if harness.spark.version < "4":
        pytest.skip("Spark 3.5 has no error of its own for this")
    folder = tmp_path / "landing"
    for place in ("day=1", "deeper/day=1"):
        (folder / place).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), folder / place / "part.parquet")
    assert_fails(
        harness,
        with_source(harness, FileSource("s", str(folder), "parquet")),
        fails(ErrorCode.SOURCE_UNREADABLE, "source s", "CONFLICTING_DIRECTORY_STRUCTURES"),
    )


def test_source_table_that_does_not_exist(each_harness: Harness) -> None:
    assert_fails(
        each_harness,
        with_source(each_harness, TableSource("s", TableName("db", "nothing"))),
        fails(ErrorCode.TABLE_NOT_FOUND, "db.nothing"),
    )


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT * FROM nothing", ErrorCode.TABLE_NOT_FOUND),
        ("SELECT FROM WHERE", ErrorCode.SOURCE_UNREADABLE),
        ("SELECT no_column FROM VALUES (1) AS r(id)", ErrorCode.SOURCE_UNREADABLE),
    ],
)
def test_source_query_that_is_wrong(harness: Harness, query: str, code: ErrorCode) -> None:
    assert_fails(harness, with_source(harness, SqlSource("s", query)), fails(code, "source s"))


def test_a_connector_that_adds_no_columns(harness: Harness) -> None:
    request = with_source(harness, SqlSource("s", "SELECT 101 AS id, 1 AS more"))
    assert isinstance(request.statement, MergeSpec)
    assigned = UpdateAction((Assignment("more", "s.more"),))
    spec = replace(
        request.statement, cases=(MergeCase("matched", assigned),), schema_evolution=True
    )
    evolving = replace(request, statement=spec)

    assert_fails(harness, evolving, fails(ErrorCode.NOT_SUPPORTED, "schema_evolution"))


@pytest.mark.parametrize("connector", HARNESSES)
def test_warehouse_that_does_not_exist(spark: SparkSession, connector: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"nowhere") as raised:
        HARNESSES[connector](spark, tmp_path / "nowhere", partitioned=True)

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert not (tmp_path / "nowhere").exists()
