"""ORC and Avro data files that Spark with Iceberg writes: read, and replaced by parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.tables import (
    assert_read_alike,
    catalog_of,
    done_here,
)
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow

FORMATS = ("orc", "avro")
_COLUMNS = (
    "id BIGINT NOT NULL, i INT, f FLOAT, d DOUBLE, m DECIMAL(9, 2), w DECIMAL(38, 10), b BOOLEAN, "
    "day DATE, at TIMESTAMP, n TIMESTAMP_NTZ, s STRING, y BINARY, "
    "st STRUCT<x: INT, `a b`: STRING, deep: STRUCT<z: DOUBLE>>, l ARRAY<INT>, "
    "ls ARRAY<STRUCT<q: DECIMAL(9, 2)>>, mp MAP<STRING, INT>, mi MAP<INT, STRUCT<v: DATE>>"
)


def _row(number: int) -> str:
    if number % 5 == 4:
        return f"({number}{', NULL' * 16})"
    sign = "-" if number % 2 else ""
    return (
        f"({number}, {sign}{number}2147483, CAST('{'NaN' if number == 2 else '-0.0'}' AS FLOAT), "
        f"{sign}{number}.25D, {sign}{number}.55BD, {sign}12345678901234567890.123{number}BD, "
        f"{number % 2 == 0}, DATE'{1969 + number}-12-31', "
        f"TIMESTAMP'{1700 + 90 * number}-06-01 00:00:00.00000{number} UTC', "
        f"TIMESTAMP_NTZ'{1960 + number}-01-31 23:59:59.999999', 'ü{number}', X'00FF0{number}', "
        f"named_struct('x', {number}, 'a b', 'v{number}', 'deep', named_struct('z', {number}.5D)), "
        f"array({number}, NULL), array(named_struct('q', {number}.25BD), NULL), "
        f"map('k{number}', {number}), "
        f"map({number}, named_struct('v', DATE'2000-01-0{number + 1}')))"
    )


def create(judge: IcebergSpark, name: str, file_format: str, mode: str, version: int) -> str:
    """A table with files of a format: renamed, added, dropped and promoted columns in between."""
    table = f"{CATALOG}.db.{name}"
    modes = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("merge", "update", "delete"))
    judge.sql(
        f"CREATE TABLE {table} ({_COLUMNS}, gone STRING) USING iceberg TBLPROPERTIES "
        f"('format-version'='{version}', 'write.format.default'='{file_format}', {modes})",
        f"INSERT INTO {table} SELECT *, 'gone' FROM VALUES {', '.join(map(_row, range(6)))}",
        f"ALTER TABLE {table} DROP COLUMN gone",
        f"ALTER TABLE {table} RENAME COLUMN s TO `new s`",
        f"ALTER TABLE {table} ALTER COLUMN i TYPE BIGINT",
        f"ALTER TABLE {table} ALTER COLUMN f TYPE DOUBLE",
        f"ALTER TABLE {table} ALTER COLUMN m TYPE DECIMAL(12, 2)",
        f"ALTER TABLE {table} ADD COLUMN st.more INT",
        f"ALTER TABLE {table} RENAME COLUMN st.x TO x2",
        f"ALTER TABLE {table} ADD COLUMN gone STRING AFTER id",
        f"INSERT INTO {table} (id, `new s`, i, st) VALUES (6, 'six', 6000000000, "
        "named_struct('x2', 1, 'a b', 'q', 'deep', NULL, 'more', 7))",
    )
    return table


def _rows(judge: IcebergSpark, table: str) -> list[dict[str, Any]]:
    return sorted(judge.sql(f"SELECT * FROM {table}"), key=lambda row: row["id"])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_merges(
    spark: SparkSession, iceberg_spark: IcebergSpark, file_format: str, mode: str, version: int
) -> None:
    name = f"{file_format}_{mode[:5].replace('-', '_')}_{version}"
    table = create(iceberg_spark, name, file_format, mode, version)
    assert assert_read_alike(spark, iceberg_spark, f"db.{name}") == 7
    rows = {row["id"]: row for row in _rows(iceberg_spark, table)}
    ids = _ids(iceberg_spark, table, version)

    merge = done_here(
        spark,
        iceberg_spark,
        f"MERGE INTO db.{name} t USING s ON t.id = s.k WHEN MATCHED AND k = 2 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET `new s` = s.v, st.more = 9 "
        "WHEN NOT MATCHED THEN INSERT (id, `new s`) VALUES (k, v)",
        "SELECT * FROM VALUES (1L, 'one'), (2L, 'two'), (10L, 'ten') AS x(k, v)",
        rewrite_share=1.0,
    )

    assert merge.metrics.files_rewritten == (mode == "copy-on-write")
    del rows[2]
    rows[1] |= {"new s": "one", "st": rows[1]["st"] | {"more": 9}}
    rows[10] = dict.fromkeys(rows[1], None) | {"id": 10, "new s": "ten"}
    assert list(map(repr, _rows(iceberg_spark, table))) == [repr(rows[n]) for n in sorted(rows)]
    assert_read_alike(spark, iceberg_spark, f"db.{name}")

    done_here(spark, iceberg_spark, f"UPDATE db.{name} SET i = 5 WHERE d < 4", "SELECT 1")
    for row in rows.values():
        row["i"] = 5 if row["d"] is not None and row["d"] < 4 else row["i"]
    done_here(spark, iceberg_spark, f"DELETE FROM db.{name} WHERE id IN (4, 6)", "SELECT 1")
    rows = {key: row for key, row in rows.items() if key not in (4, 6)}
    assert list(map(repr, _rows(iceberg_spark, table))) == [repr(rows[n]) for n in sorted(rows)]

    if version == 3:
        after = _ids(iceberg_spark, table, version)
        assert {key: after[key] for key in after if key in ids} == {
            key: ids[key] for key in after if key in ids
        }


def _ids(judge: IcebergSpark, table: str, version: int) -> dict[int, int]:
    if version < 3:
        return {}
    return {row["id"]: row["r"] for row in judge.sql(f"SELECT id, _row_id AS r FROM {table}")}


@pytest.mark.parametrize("file_format", FORMATS)
def test_compaction(spark: SparkSession, iceberg_spark: IcebergSpark, file_format: str) -> None:
    name = f"compact_{file_format}"
    table = create(iceberg_spark, name, file_format, "merge-on-read", 2)
    # The file of these deletes is of the format, too.
    iceberg_spark.sql(f"DELETE FROM {table} WHERE id = 3")
    before = _rows(iceberg_spark, table)
    spec = CompactSpec(mode="full")

    result = run(
        JobRequest(
            f"{name:0<32}", TableName("db", name), catalog_of(iceberg_spark), spec, sources=()
        ),
        spark,
    )

    assert result.error is None, result.error
    assert list(map(repr, _rows(iceberg_spark, table))) == list(map(repr, before))
    (found,) = iceberg_spark.sql(f"SELECT array_agg(file_format) AS f FROM {table}.files")
    assert set(found["f"]) == {"PARQUET"}


def _refused(spark: SparkSession, judge: IcebergSpark, name: str) -> str:
    """What is said of an UPDATE of this table."""
    before = judge.sql(f"SELECT * FROM {CATALOG}.db.{name}")
    with pytest.raises(AssertionError) as caught:
        done_here(spark, judge, f"UPDATE db.{name} SET id = 2", "SELECT 1")
    assert judge.sql(f"SELECT * FROM {CATALOG}.db.{name}") == before
    return str(caught.value)


def test_timestamps_that_orc_would_wrap(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.years"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING iceberg "
        "TBLPROPERTIES ('write.format.default'='orc')",
        f"INSERT INTO {table} VALUES (1, TIMESTAMP'2300-01-01 00:00:00')",
    )
    assert "all timestamps in column at are from the years" in _refused(
        spark, iceberg_spark, "years"
    )
    # A column that came later is in no older file.
    iceberg_spark.sql(
        f"DELETE FROM {table}",
        f"ALTER TABLE {table} DROP COLUMN at",
        f"INSERT INTO {table} VALUES (1)",
        f"ALTER TABLE {table} ADD COLUMN later TIMESTAMP",
    )
    done_here(spark, iceberg_spark, "UPDATE db.years SET id = 2", "SELECT 1")
    assert iceberg_spark.sql(f"SELECT * FROM {table}") == [{"id": 2, "later": None}]


def test_nested_timestamps_in_orc(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.nested_times"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, l ARRAY<TIMESTAMP>) USING iceberg "
        "TBLPROPERTIES ('write.format.default'='orc')",
        f"INSERT INTO {table} VALUES (1, array(TIMESTAMP'2000-01-01 00:00:00'))",
    )
    assert "column element" in _refused(spark, iceberg_spark, "nested_times")


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_of_before_iceberg(
    spark: SparkSession, iceberg_spark: IcebergSpark, file_format: str
) -> None:
    """Files without ids, found by name."""
    folder = iceberg_spark.folder / f"old {file_format}"
    table = f"{CATALOG}.db.added_{file_format}"
    if file_format == "orc":
        iceberg_spark.sql(
            f"INSERT OVERWRITE DIRECTORY '{folder}' USING orc "
            "SELECT 1 AS id, 'x' AS s, array(1, NULL) AS l, named_struct('q', 2.5D) AS st"
        )
    else:
        write_avro(folder)
    (file,) = folder.glob(f"*.{file_format}")
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, s STRING, l ARRAY<INT>, st STRUCT<q: DOUBLE>) "
        "USING iceberg",
        f"CALL {CATALOG}.system.add_files(table => 'db.added_{file_format}', "
        f"source_table => '`{file_format}`.`{folder}`')",
        f"ALTER TABLE {table} RENAME COLUMN s TO t",
    )
    assert_read_alike(spark, iceberg_spark, f"db.added_{file_format}")

    done_here(spark, iceberg_spark, f"UPDATE db.added_{file_format} SET id = 2", "SELECT 1")

    assert file.exists()
    wanted = {"id": 2, "t": "x", "l": [1, None], "st": {"q": 2.5}}
    assert iceberg_spark.sql(f"SELECT * FROM {table}") == [wanted]


def write_avro(folder: Path) -> None:
    """A file as others write it."""
    import fastavro

    def optional(kind: Any) -> list[Any]:
        return ["null", kind]

    struct = {"type": "record", "name": "st", "fields": [{"name": "q", "type": optional("double")}]}
    fields = {
        "id": "int",
        "s": "string",
        "l": {"type": "array", "items": optional("int")},
        "st": struct,
    }
    schema = {
        "type": "record",
        "name": "rows",
        "fields": [{"name": name, "type": optional(kind)} for name, kind in fields.items()],
    }
    folder.mkdir()
    row = {"id": 1, "s": "x", "l": [1, None], "st": {"q": 2.5}}
    with Path(folder, "part.avro").open("wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(schema), [row])
