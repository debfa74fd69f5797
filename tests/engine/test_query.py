"""A query as a job: values, limits, files, pinned tables, and nothing changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import MOST_BYTES, QueryReport, QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Origin,
    Source,
    SqlSource,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.query_job import QueryJob
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, append, create, snapshot_ids

TYPES = {
    "true": ("boolean", True),
    "cast(-7 AS TINYINT)": ("tinyint", -7),
    "9223372036854775807": ("bigint", 9223372036854775807),
    "cast(0.1 AS FLOAT)": ("float", 0.1),
    "cast('NaN' AS FLOAT)": ("float", "NaN"),
    "0.1D": ("double", 0.1),
    "-double('Infinity')": ("double", "-Infinity"),
    "cast(1.50 AS DECIMAL(20, 4))": ("decimal(20,4)", "1.5000"),
    "'a\\n\"b\"'": ("string", 'a\n"b"'),
    "X'00FF'": ("binary", "AP8="),
    "DATE '0001-01-01'": ("date", "0001-01-01"),
    "TIMESTAMP '2026-07-01 12:00:00.5Z'": ("timestamp", "2026-07-01 14:00:00.5"),
    "TIMESTAMP_NTZ '2026-07-01 12:00:00'": ("timestamp_ntz", "2026-07-01 12:00:00"),
    "INTERVAL '1 02:00' DAY TO MINUTE": (
        "interval day to minute",
        "INTERVAL '1 02:00' DAY TO MINUTE",
    ),
    "NULL": ("void", None),
    "cast(NULL AS STRUCT<a: INT>)": ("struct<a:int>", None),
    "array(1.5BD, NULL)": ("array<decimal(2,1)>", ["1.5", None]),
    "map(DATE '2026-01-31', array(X'01'))": ("map<date,array<binary>>", {"2026-01-31": ["AQ=="]}),
    "named_struct('a', 1, 'b', named_struct('c', double('NaN')))": (
        "struct<a:int,b:struct<c:double>>",
        {"a": 1, "b": {"c": "NaN"}},
    ),
}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A table with the rows 0, 1 and 2."""
    folder = tmp_path / "lake"
    folder.mkdir()
    connector = open_connector(CatalogSpec("paimon", str(folder)), {})
    create(connector, {"id": "int", "v": "string"})
    append(connector, [{"id": each, "v": f"v{each}"} for each in range(3)], "op")
    return folder


def request(
    warehouse: Path, query: str, sources: Sequence[Source] = (), try_number: int = 1, **spec: Any
) -> JobRequest:
    return JobRequest(
        "query-1",
        None,
        CatalogSpec("paimon", str(warehouse)),
        QuerySpec("query", **spec),
        (TableSource("orders", NAME), *sources, SqlSource("query", query)),
        JobOptions(session_time_zone="Europe/Berlin"),
        Origin(try_number=try_number),
    )


def found(result: JobResult) -> QueryReport:
    assert result.error is None, result.error
    assert result.query is not None
    return result.query


def test_values_of_each_type(spark: SparkSession, warehouse: Path) -> None:
    query = f"SELECT {', '.join(TYPES)}"
    result = run(request(warehouse, query), spark)

    report = found(result)
    assert report.rows is not None
    values = zip([column.type for column in report.columns], report.rows[0], strict=True)
    assert list(values) == list(TYPES.values())
    assert JobResult.from_json(result.to_json()) == result


def test_a_query_changes_nothing_and_reads_anew(spark: SparkSession, warehouse: Path) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    before = snapshot_ids(connector)
    asked = "SELECT count(*) AS n, max(id) AS id FROM orders"
    first = run(request(warehouse, asked), spark)

    assert (first.status, first.target, first.new_snapshot_id) == ("unchanged", "", None)
    assert found(first).rows == ((3, 2),)
    assert [each.name for each in found(first).columns] == ["n", "id"]
    assert snapshot_ids(connector) == before
    assert [each.name for each in (warehouse / "_operations").iterdir()] == ["query-1.json"]
    append(connector, [{"id": 9, "v": "x"}], "other")
    again = run(request(warehouse, asked, try_number=2), spark)
    assert found(again).rows == ((4, 9),)
    assert JobResult.from_json((warehouse / "_operations/query-1.json").read_text()) == again


@pytest.mark.parametrize(("limit", "ids", "truncated"), [(2, [2, 1], True), (3, [2, 1, 0], False)])
def test_more_rows_than_the_limit(
    spark: SparkSession, warehouse: Path, limit: int, ids: list[int], truncated: bool
) -> None:
    report = found(
        run(request(warehouse, "SELECT id FROM orders ORDER BY id DESC", limit=limit), spark)
    )

    assert report.rows == tuple((each,) for each in ids)
    assert (report.row_count, report.truncated) == (len(ids), truncated)


def test_no_rows_and_columns_of_one_name(spark: SparkSession, warehouse: Path) -> None:
    report = found(run(request(warehouse, "SELECT id, v AS id FROM orders WHERE id > 5"), spark))

    assert (report.rows, report.row_count, report.truncated) == ((), 0, False)
    assert [(each.name, each.type) for each in report.columns] == [("id", "int"), ("id", "string")]


def test_rows_that_are_too_large_for_a_result(spark: SparkSession, warehouse: Path) -> None:
    query = f"SELECT repeat('ä', {MOST_BYTES // 4}) FROM orders"

    assert len(found(run(request(warehouse, query, limit=1), spark)).rows or ()) == 1
    error = run(request(warehouse, query), spark).error

    assert error is not None
    assert error.code == "RESULT_TOO_LARGE"
    assert "with output_path" in error.remedy
    assert not error.retryable


def test_a_table_is_read_at_one_snapshot(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    report = QueryJob._report

    def late(job: QueryJob, *arguments: Any) -> QueryReport:
        append(connector, [{"id": 9, "v": "late"}], "late")
        return report(job, *arguments)

    monkeypatch.setattr(QueryJob, "_report", late)
    again = TableSource("again", NAME)
    query = "SELECT count(*), (SELECT count(*) FROM again) FROM orders"

    assert found(run(request(warehouse, query, [again]), spark)).rows == ((3, 3),)


def test_landed_files_are_read_too(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,v\n2,b\n3,c\n")
    files = FileSource(
        "new", str(tmp_path / "new.csv"), "csv", {"header": "true"}, "id INT, v STRING"
    )
    query = "SELECT n.id, o.v FROM new AS n LEFT JOIN orders AS o USING (id) ORDER BY id"

    result = run(request(warehouse, query, [files]), spark)

    assert found(result).rows == ((2, "v2"), (3, None))
    assert result.metrics.sources["new"].records == 2


ROWS = """
SELECT id, v, id / 4D AS share, cast(id AS DECIMAL(10, 2)) AS amount,
       TIMESTAMP '2026-07-01 12:00:00Z' AS at, nullif(id, 1) AS gap
FROM orders ORDER BY id
"""


def test_parquet_files_of_a_retry_have_each_row_once(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    first = found(run(request(warehouse, ROWS, output_path=str(output), limit=1), spark))
    report = found(run(request(warehouse, ROWS, output_path=str(output), try_number=2), spark))

    assert (report.row_count, report.rows, report.truncated) == (3, None, False)
    assert report.location != first.location
    assert [str(each) for each in output.iterdir()] == [report.location]
    rows = pq.read_table(report.location).to_pylist()
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert [str(row["amount"]) for row in rows] == ["0.00", "1.00", "2.00"]
    assert [row["gap"] for row in rows] == [0, None, 2]
    assert rows[0]["at"].timestamp() == 1782907200


def test_csv_files_are_read_as_the_rows_that_were_written(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    output = f"file://{tmp_path}/out"
    report = found(run(request(warehouse, ROWS, output_path=output, output_format="csv"), spark))

    folder = Path(str(report.location).removeprefix("file://"))
    (text, *_) = [each.read_text() for each in sorted(folder.iterdir())]
    assert text.splitlines()[0] == '"id","v","share","amount","at","gap"'
    schema = "id INT, v STRING, share DOUBLE, amount DECIMAL(10, 2), at TIMESTAMP, gap INT"
    files = FileSource("files", str(folder), "csv", {"header": "true"}, schema)
    back = run(request(warehouse, "SELECT * FROM files ORDER BY id", [files]), spark)
    assert found(back).rows == (
        (0, "v0", 0.0, "0.00", "2026-07-01 14:00:00", 0),
        (1, "v1", 0.25, "1.00", "2026-07-01 14:00:00", None),
        (2, "v2", 0.5, "2.00", "2026-07-01 14:00:00", 2),
    )


def test_files_without_rows_tell_the_columns(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    query = "SELECT id, v FROM orders WHERE id > 5"
    report = found(run(request(warehouse, query, output_path=str(tmp_path / "out")), spark))

    assert report.row_count == 0
    assert pq.read_table(report.location).schema.names == ["id", "v"]


def test_a_query_that_fails_leaves_no_files(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    query = "SELECT id, 1 / (id - 2) AS x FROM orders"
    result = run(request(warehouse, query, output_path=str(tmp_path / "out")), spark)

    assert result.error is not None
    assert result.error.code == "EXPRESSION_FAILED"
    assert list((tmp_path / "out").iterdir()) == []
    stored = json.loads((warehouse / "_operations/query-1.json").read_text())
    assert stored["error"]["code"] == "EXPRESSION_FAILED"


@pytest.mark.parametrize(
    ("query", "spec", "code", "text"),
    [
        ("SELECT nothing FROM orders", {}, "SOURCE_UNREADABLE", "nothing"),
        ("SELECT 1 AS a, 2 AS A", {"output_path": "{}"}, "AMBIGUOUS_REFERENCE", "called a"),
        ("SELECT INTERVAL '1' DAY AS a", {"output_path": "{}"}, "NOT_SUPPORTED", "column a"),
        (
            "SELECT array(1) AS a",
            {"output_path": "{}", "output_format": "csv"},
            "NOT_SUPPORTED",
            "column a, which is array<int>",
        ),
    ],
)
def test_what_is_refused(
    spark: SparkSession,
    warehouse: Path,
    tmp_path: Path,
    query: str,
    spec: dict[str, Any],
    code: str,
    text: str,
) -> None:
    output = tmp_path / "out"
    spec = {name: value.format(output) for name, value in spec.items()}
    error = run(request(warehouse, query, **spec), spark).error

    assert error is not None
    assert (error.code, error.retryable) == (code, False)
    assert text in error.message
    assert not output.exists()


def test_a_query_needs_a_session(warehouse: Path) -> None:
    error = run(request(warehouse, "SELECT 1"), None).error

    assert error is not None
    assert error.message == "query: needs a Spark session"
