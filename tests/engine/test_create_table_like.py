"""CREATE TABLE with the columns of a source, of which no row is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, Source, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.run import run
from tests.support.paimon_tables import NAME


def created(
    spark: SparkSession | None,
    catalog: CatalogSpec,
    *sources: Source,
    spec: CreateTableSpec | None = None,
    operation_id: str = "create-1",
) -> JobResult:
    statement = spec or CreateTableSpec(source=sources[-1].name)
    return run(JobRequest(operation_id, NAME, catalog, statement, sources), spark)


def columns(catalog: CatalogSpec) -> list[tuple[str, str, bool]]:
    table = open_connector(catalog, {}).metadata.load_table(NAME)
    return [
        (each.name, each.type.upper().replace(": ", ":"), each.nullable) for each in table.columns
    ]


def landed(folder: Path, **values: pa.Array) -> FileSource:
    folder.mkdir()
    pq.write_table(pa.table(values), folder / "1.parquet")
    return FileSource("s", str(folder), "parquet")


def test_columns_and_keys(spark: SparkSession, catalog: CatalogSpec, tmp_path: Path) -> None:
    nested = pa.array([{"a b": [1]}], pa.struct([("a b", pa.list_(pa.int64()))]))
    source = landed(
        tmp_path / "files",
        id=pa.array([1]),
        Day=pa.array(["x"]),
        n=nested,
        m=pa.array([None], pa.decimal128(7, 2)),
    )
    spec = CreateTableSpec(source="s", partition_keys=("day",), comment="as landed")

    result = created(spark, catalog, source, spec=spec)
    again = created(spark, catalog, source, spec=spec, operation_id="create-2")

    assert result.status == "committed", result.error
    assert again.status == "unchanged", again.error
    assert columns(catalog) == [
        ("id", "BIGINT", True),
        ("Day", "STRING", True),
        ("n", "STRUCT<`A B`:ARRAY<BIGINT>>", True),
        ("m", "DECIMAL(7,2)", True),
    ]
    table = open_connector(catalog, {}).metadata.load_table(NAME)
    assert [each.name for each in table.partitioned_by] == ["Day"]
    assert table.snapshot_id is None


def test_a_query_and_key_columns(spark: SparkSession, catalog: CatalogSpec, tmp_path: Path) -> None:
    files = landed(tmp_path / "files", id=pa.array([1]), small=pa.array([1], pa.int16()))
    query = SqlSource("q", "SELECT id, CAST(small AS INT) AS n, current_date() AS d FROM s")
    spec = CreateTableSpec(source="q", primary_key=("ID",))

    result = created(spark, catalog, files, query, spec=spec)

    assert result.status == "committed", result.error
    assert columns(catalog) == [("id", "BIGINT", False), ("n", "INT", True), ("d", "DATE", True)]


def test_files_that_have_changed_are_a_difference(
    spark: SparkSession, catalog: CatalogSpec, tmp_path: Path
) -> None:
    created(spark, catalog, landed(tmp_path / "1", id=pa.array([1])))

    changed = landed(tmp_path / "2", id=pa.array([1]), more=pa.array(["x"]))
    error = created(spark, catalog, changed, operation_id="create-2").error

    assert error is not None
    assert error.code == "TABLE_DIFFERS"
    assert "more" in error.message
    assert [name for name, *_ in columns(catalog)] == ["id"]


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("SELECT 1 AS a, NULL AS b", "TYPE_MISMATCH", "b is NULL in every row"),
        ("SELECT 1 AS a, 2 AS A", "REQUEST_INVALID", "a occurs more than once"),
        ("SELECT INTERVAL '1' DAY AS i", "NOT_SUPPORTED", "column i of the source has"),
    ],
)
def test_columns_that_no_table_can_have(
    spark: SparkSession, catalog: CatalogSpec, query: str, code: str, told: str
) -> None:
    error = created(spark, catalog, SqlSource("q", query)).error

    assert error is not None
    assert (error.code, told in error.message) == (code, True), error
    assert not list(Path(catalog.warehouse).glob("*.db/*/schema*"))


def test_a_source_needs_a_session(catalog: CatalogSpec) -> None:
    error = created(None, catalog, SqlSource("q", "SELECT 1 AS a")).error

    assert error is not None
    assert error.code == "REQUEST_INVALID"
    assert "needs a Spark session" in error.message
