"""CHAR columns of sources: they have their blanks, and queries compare them as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest
from pypaimon import CatalogFactory
from pyspark.sql import functions as F

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import (
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import Harness
from tests.conformance.tables import SeedTable

TABLE = SeedTable(
    "chars",
    (ColumnSpec("code", "CHAR(4)"), ColumnSpec("v", "STRING")),
    (({"code": "ab  ", "v": "old"}, {"code": "wxyz", "v": "old"}),),
)
OLD = {"ab  ": "old", "wxyz": "old"}
CODES = TableName("db", "codes")
CODES_SOURCE = TableSource("codes", CODES)
SCHEMA = "code CHAR(4), short CHAR(2), n INT"
# The first as Flink may store it, the second as Spark does.
ROWS = {"code": ["ab", "cd  ", "wxyz"], "short": ["ab", "c", "yz"], "n": [1, 2, 3]}
UPSERT = (
    "MERGE INTO db.target t USING {} s ON t.code = s.code WHEN MATCHED THEN UPDATE SET v = 'new' "
    "WHEN NOT MATCHED THEN INSERT (code, v) VALUES (s.code, 'new')"
)


pytestmark = pytest.mark.slow


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    """The target, and a table of ROWS."""
    harness = make_table("append-cow", TABLE, partitioned=False)
    columns = tuple(ColumnSpec(*each.split()) for each in SCHEMA.split(", "))
    harness.connector.metadata.create_table(CODES, CreateTableSpec(columns))
    builder = paimon_table(harness, CODES).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows_as_arrow())
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
    return harness


def paimon_table(harness: Harness, name: TableName):
    return CatalogFactory.create({"warehouse": str(harness.warehouse)}).get_table(str(name))


def rows_as_arrow() -> pa.Table:
    types = pa.schema([("code", pa.string()), ("short", pa.string()), ("n", pa.int32())])
    return pa.table(ROWS, types)


def landed(folder: Path, format_: str) -> FileSource:
    """ROWS as a file whose schema says CHAR."""
    rows, path = rows_as_arrow(), folder / f"rows.{format_}"
    if format_ == "csv":
        pa_csv.write_csv(rows, path)
    elif format_ == "parquet":
        pq.write_table(rows, path)
    else:
        pa_orc.write_table(rows, path)
    options = {"header": "true"} if format_ == "csv" else {}
    return FileSource("files", str(path), format_, options, SCHEMA)


def done(harness: Harness, statement: str, *sources: Source) -> JobResult:
    parsed = parse_statement(statement, [source.name for source in sources], "db")
    all_sources = (*sources, *parsed.sources)
    request = JobRequest("chars", parsed.target, harness.catalog, parsed.statement, all_sources)
    return Job(request, harness.spark, harness.open()).run()


def rows_after(harness: Harness, statement: str, *sources: Source) -> dict[str, str]:
    """``v`` by ``code``."""
    result = done(harness, statement, *sources)
    assert result.error is None, result.error
    rows = [(row["code"], row["v"]) for row in harness.read()]
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_a_table(harness: Harness) -> None:
    found = rows_after(harness, UPSERT.format("codes"), CODES_SOURCE)

    assert found == {"ab  ": "new", "cd  ": "new", "wxyz": "new"}


@pytest.mark.parametrize("format_", ["csv", "parquet", "orc"])
def test_files_whose_schema_says_char(harness: Harness, tmp_path: Path, format_: str) -> None:
    found = rows_after(harness, UPSERT.format("files"), landed(tmp_path, format_))

    assert found == {"ab  ": "new", "cd  ": "new", "wxyz": "new"}


COMPARED = (
    "SELECT code, concat_ws(' ', IF(code = 'ab', 'equal', NULL), IF('cd' <=> code, 'safe', NULL), "
    "IF(code IN ('ab', 'cd'), 'in', NULL), IF(code = short, 'char', NULL), "
    "CASE c WHEN 'wxyz' THEN 'case' END) AS v FROM (SELECT *, code AS c FROM {})"
)
FOUND = {"ab  ": "equal in char", "cd  ": "safe in", "wxyz": "case"}


def test_a_query_over_a_table(harness: Harness) -> None:
    query = SqlSource("q", COMPARED.format("codes"))

    found = rows_after(harness, "INSERT OVERWRITE db.target TABLE q", CODES_SOURCE, query)

    assert found == FOUND


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_query_over_files(harness: Harness, tmp_path: Path, format_: str) -> None:
    files, query = landed(tmp_path, format_), SqlSource("q", COMPARED.format("files"))

    assert rows_after(harness, "INSERT OVERWRITE db.target TABLE q", files, query) == FOUND


def test_parquet_files_of_which_spark_knows_that_they_hold_char(
    harness: Harness, tmp_path: Path
) -> None:
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    frame = harness.spark.createDataFrame([("ab  ",)], "code STRING")
    frame.select(F.col("code").alias("code", metadata=declared)).write.parquet(f"{tmp_path}/spark")
    files = FileSource("files", f"{tmp_path}/spark", "parquet")
    query = SqlSource("q", "SELECT code FROM files WHERE code = 'ab'")

    assert rows_after(harness, UPSERT.format("q"), files, query) == OLD | {"ab  ": "new"}


def test_values_are_texts(harness: Harness) -> None:
    source = "(VALUES ('ab'), ('wxyz')) AS s ON t.code = s.col1"

    found = rows_after(harness, f"MERGE INTO db.target t USING {source} WHEN MATCHED THEN DELETE")

    assert found == {"ab  ": "old"}


def test_a_copy_into_texts_has_the_blanks(harness: Harness) -> None:
    texts = TableName("db", "texts")
    columns = (ColumnSpec("code", "STRING"), ColumnSpec("short", "STRING"), ColumnSpec("n", "INT"))
    harness.connector.metadata.create_table(texts, CreateTableSpec(columns))

    result = done(harness, "INSERT INTO db.texts TABLE codes", CODES_SOURCE)

    assert result.error is None
    builder = paimon_table(harness, texts).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert sorted(rows["code"].to_pylist()) == ["ab  ", "cd  ", "wxyz"]


SUBQUERIES = {
    "in": "code IN (SELECT code FROM {} WHERE code = 'ab')",
    "exists": "EXISTS (SELECT 1 FROM {} c WHERE c.code = target.code AND c.short IN ('ab   ', ''))",
    "one value": "code = (SELECT max(code) FROM {} WHERE code < 'b')",
}


@pytest.mark.parametrize("where", SUBQUERIES.values(), ids=SUBQUERIES)
def test_a_subquery_over_a_table(harness: Harness, where: str) -> None:
    found = rows_after(
        harness, f"DELETE FROM db.target WHERE {where.format('codes')}", CODES_SOURCE
    )

    assert found == {"wxyz": "old"}


def test_a_subquery_over_files(harness: Harness, tmp_path: Path) -> None:
    where = SUBQUERIES["in"].format("files")

    found = rows_after(harness, f"DELETE FROM db.target WHERE {where}", landed(tmp_path, "parquet"))

    assert found == {"wxyz": "old"}


MERGE = "MERGE INTO db.target t USING codes s ON"
REFUSED = {
    "a text in ON": (
        f"{MERGE} t.code = s.code AND s.code = 'ab' WHEN MATCHED THEN DELETE",
        "ON: s.code is CHAR(4), whose values end in blanks, and is compared with 'ab'",
    ),
    "a text in a clause": (
        f"{MERGE} t.code = s.code WHEN MATCHED AND s.short IN ('yz', 'a') THEN DELETE",
        "s.short is CHAR(2), whose values end in blanks, and is compared with 'a'",
    ),
    "CHAR of another length": (
        f"{MERGE} t.code = s.short WHEN MATCHED THEN DELETE",
        "t.code is CHAR(4), whose values end in blanks, and is compared with s.short",
    ),
    "CHAR of another length in a subquery": (
        "DELETE FROM db.target WHERE EXISTS (SELECT 1 FROM codes WHERE short = target.code)",
        "WHERE: code is CHAR(4), whose values end in blanks, and is compared with short",
    ),
    "CHAR of another length in IN": (
        "DELETE FROM db.target WHERE v = 'x' OR code IN (SELECT short FROM codes)",
        "WHERE: code is CHAR(4), whose values end in blanks, and is compared with short",
    ),
    "a text within a subquery": (
        "DELETE FROM db.target WHERE EXISTS (SELECT 1 FROM codes WHERE target.code = 'ab')",
        "WHERE: code is CHAR(4), whose values end in blanks, and is compared with 'ab'",
    ),
}


@pytest.mark.parametrize(("statement", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_another_comparison_is_refused(
    harness: Harness, statement: str, message: str
) -> None:
    result = done(harness, statement, CODES_SOURCE)

    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
    assert message in result.error.message
    assert {row["code"]: row["v"] for row in harness.read()} == OLD


def test_trimmed_columns_are_compared(harness: Harness) -> None:
    on = "rtrim(t.code) = rtrim(s.short) AND rtrim(s.code) = 'ab'"
    statement = f"MERGE INTO db.target t USING codes s ON {on} WHEN MATCHED THEN DELETE"

    assert rows_after(harness, statement, CODES_SOURCE) == {"wxyz": "old"}
