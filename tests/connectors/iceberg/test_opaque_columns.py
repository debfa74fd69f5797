"""Columns of types that Spark does not have: statements that do not use them carry their values."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.run import run
from tests.connectors.iceberg.tables import catalog_of, opened
from tests.judge.iceberg_spark import CATALOG, IcebergSpark
from tests.support.iceberg_files import spec_by

MODES = ("copy-on-write", "merge-on-read")
NESTED = {
    "type": "struct",
    "fields": [
        {"id": 7, "name": "a", "type": "uuid", "required": False},
        {"id": 8, "name": "b", "type": "time", "required": False},
    ],
}
TYPES: Mapping[str, Any] = {
    "id": "int",
    "u": "uuid",
    "n": "int",
    "t": "time",
    "f": "fixed[3]",
    "s": NESTED,
}
OPAQUE = {"u": "uuid", "t": "time", "f": "fixed[3]", "s": "uuid"}
Row = dict[str, Any]


def schema_of(columns: Sequence[str] = tuple(TYPES)) -> Schema:
    fields = [
        {"id": number, "name": name, "type": TYPES[name], "required": name == "id"}
        for number, name in enumerate(columns, 1)
    ]
    return Schema.model_validate({"type": "struct", "schema-id": 0, "fields": fields})


def row(number: int) -> Row:
    """Each third one has NULL in all columns but ``id``."""
    if number % 3 == 2:
        return {**dict.fromkeys(TYPES), "id": number}
    key = uuid.UUID(int=(number * 0x1F << 120) + number)
    time = dt.time(number, 59, 7, 123456 + number)
    nested = {"a": uuid.UUID(int=number), "b": time} if number else None
    fixed = bytes([number, 255, 0])
    return {"id": number, "u": key, "n": number * 10, "t": time, "f": fixed, "s": nested}


ROWS = [row(number) for number in range(9)]


def new(number: int, n: int | None = None) -> Row:
    return {**dict.fromkeys(TYPES), "id": number, "n": n}


@dataclass(frozen=True)
class Tables:
    """Tables that Java fills, and statements of this project on them."""

    judge: IcebergSpark
    spark: SparkSession

    def made(
        self,
        mode: str = MODES[0],
        *,
        columns: Sequence[str] = tuple(TYPES),
        rows: Sequence[Row] = ROWS,
        partition: tuple[str, str] | None = None,
    ) -> str:
        """The name of a new table."""
        name, schema = f"db.t{uuid.uuid4().hex[:8]}", schema_of(columns)
        modes = {f"write.{each}.mode": mode for each in ("merge", "update", "delete")}
        spec = spec_by(schema, *partition) if partition else UNPARTITIONED_PARTITION_SPEC
        self.judge.library().create_table(name, schema, partition_spec=spec, properties=modes)
        if rows:
            self.judge.append(name, [{each: found[each] for each in columns} for found in rows])
        return name

    def run(self, text: str, *sources: Source, dry_run: bool = False) -> JobResult:
        parsed = parse_statement(text, [each.name for each in sources])
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=parsed.target,
            catalog=catalog_of(self.judge),
            statement=parsed.statement,
            sources=(*sources, *parsed.sources),
            dry_run=dry_run,
        )
        return run(request, self.spark)

    def done(self, text: str, *sources: Source, dry_run: bool = False) -> JobResult:
        result = self.run(text, *sources, dry_run=dry_run)
        assert result.error is None, (text, result.error)
        return result

    def refused(self, text: str, *sources: Source) -> str:
        """The message."""
        error = self.run(text, *sources).error
        assert error is not None, text
        assert error.code == ErrorCode.NOT_SUPPORTED.name, (text, error)
        return error.message

    def query(self, text: str, *tables: str) -> JobResult:
        """Run a query over tables, which it calls ``s0``, ``s1`` …"""
        sources = [TableSource(f"s{i}", TableName.parse(each)) for i, each in enumerate(tables)]
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=None,
            catalog=catalog_of(self.judge),
            statement=QuerySpec("q", 100),
            sources=(*sources, SqlSource("q", text)),
        )
        return run(request, self.spark)

    def loaded(self, name: str) -> Any:
        """The table as pyiceberg opens it."""
        return self.judge.library().load_table(name)

    def assert_rows(self, name: str, wanted: Sequence[Row]) -> None:
        """Check the rows as Java and pyiceberg read them."""
        # pyiceberg fails on an empty table with a UUID.
        found = self.loaded(name).scan().to_arrow().to_pylist() if wanted else []
        assert sorted(map(repr, map(_plain, found))) == sorted(map(repr, map(_plain, wanted)))
        by_java = self.judge.records(name)
        assert sorted(map(repr, by_java)) == sorted(map(repr, map(_java, wanted)))

    def elements(self, name: str) -> list[Any]:
        """What the footer of each data file says of the columns."""
        found = [footers.read_footer(pa.OSFile(path)).fields for path in self.paths(name)]
        return [footers.items(each[footers.FileField.SCHEMA])[1:] for each in found]

    def paths(self, name: str) -> list[str]:
        tasks = self.loaded(name).scan().plan_files()
        return [urlsplit(task.file.file_path).path for task in tasks]


def _plain(value: Any) -> Any:
    """pyiceberg has bytes for a UUID."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.bytes if isinstance(value, uuid.UUID) else value


def _java(found: Row) -> Row:
    return {name: _java_text(value) for name, value in found.items()}


def _java_text(value: Any) -> Any:
    if isinstance(value, dict):
        return f"Record({', '.join(map(str, value.values()))})"
    return str(value) if isinstance(value, uuid.UUID | dt.time) else value


@pytest.fixture(scope="module")
def tables(iceberg_spark: IcebergSpark, spark: SparkSession) -> Tables:
    return Tables(iceberg_spark, spark)


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_values(tables: Tables, mode: str) -> None:
    name = tables.made(mode)
    (made_by_java,) = tables.elements(name)
    rows = {each["id"]: dict(each) for each in ROWS}

    tables.done(f"DELETE FROM {name} WHERE id = 1")
    del rows[1]
    tables.assert_rows(name, list(rows.values()))

    tables.done(f"UPDATE {name} SET n = coalesce(n, 0) + 1 WHERE id IN (2, 4)")
    rows[2]["n"], rows[4]["n"] = 1, 41
    tables.assert_rows(name, list(rows.values()))

    tables.done(
        f"MERGE INTO {name} t USING s ON t.id = s.id WHEN MATCHED AND s.id = 6 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET n = -s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET n = 7",
        SqlSource("s", "SELECT CAST(id AS INT) id FROM range(6, 11)"),
    )
    del rows[6]
    rows |= {7: {**rows[7], "n": -7}, 8: {**rows[8], "n": -8}, 0: {**rows[0], "n": 7}}
    rows |= {9: new(9), 10: new(10)}
    tables.assert_rows(name, list(rows.values()))

    tables.done(f"INSERT INTO {name} (n, id) VALUES (1, 11)")
    tables.done(f"INSERT INTO {name} BY NAME SELECT 12 AS id")
    rows |= {11: new(11, 1), 12: new(12)}
    tables.assert_rows(name, list(rows.values()))
    assert all(each == made_by_java for each in tables.elements(name))
    _assert_metrics(tables, name)


def _assert_metrics(tables: Tables, name: str) -> None:
    """Check that manifests count the NULLs of carried columns, and have no bounds of these."""
    table = pinned_table(opened(tables.judge).metadata.load_table(TableName.parse(name)))
    assert len(table.files) > 1
    for each in table.files:
        stored, nulls = pq.read_table(each.path), each.entry.by_id("null_value_counts")
        assert [nulls[i] for i in (2, 4, 5)] == [stored.column(i - 1).null_count for i in (2, 4, 5)]
        if "/java-" not in each.path:
            assert each.entry.by_id("lower_bounds").keys() <= {1, 3}


USES = (
    "DELETE FROM {t} WHERE u IS NULL",
    "DELETE FROM {t} AS x WHERE x.s.a IS NULL",
    "DELETE FROM {t} WHERE id IN (SELECT id FROM src WHERE src.t > '10')",
    "UPDATE {t} SET u = NULL WHERE id = 1",
    "UPDATE {t} SET s.a = NULL",
    "UPDATE {t} SET n = length(f)",
    "UPDATE {t} SET n = (SELECT max(length(f)) FROM src)",
    "INSERT INTO {t} SELECT 1, NULL, 2, NULL, NULL, NULL",
    "INSERT INTO {t} SELECT 1, 2",
    "INSERT INTO {t} (id, u) SELECT 1, NULL",
    "INSERT INTO {t} BY NAME SELECT 1 AS id, NULL AS F",
    "INSERT OVERWRITE {t} SELECT 1, 2",
    "MERGE INTO {t} x USING src ON x.id = src.id WHEN MATCHED THEN UPDATE SET *",
    "MERGE INTO {t} x USING src ON x.id = src.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} x USING src ON x.id = src.id WHEN NOT MATCHED THEN INSERT VALUES (1, 2)",
    "MERGE INTO {t} x USING src ON x.u = src.u WHEN MATCHED THEN DELETE",
    "MERGE INTO {t} x USING src ON x.id = src.id WHEN MATCHED AND src.f IS NULL THEN DELETE",
    "MERGE INTO {t} x USING src ON x.id = src.id WHEN MATCHED THEN UPDATE SET n = src.u",
    "MERGE INTO {t} x USING q ON x.id = q.id AND f = 'a' WHEN MATCHED THEN DELETE",
)


def test_uses_are_refused(tables: Tables) -> None:
    name = tables.made()
    for text in USES:
        # A source may have a column of the same name, of a type that Spark has.
        query = SqlSource("q", "SELECT 1 AS id, 'a' AS u")
        message = tables.refused(
            text.format(t=name), TableSource("src", TableName.parse(name)), query
        )
        assert any(f" {column} has the type {kind}" in message for column, kind in OPAQUE.items())
    assert len(tables.loaded(name).metadata.snapshots) == 1


def test_a_required_column_cannot_be_left_out(tables: Tables) -> None:
    name = tables.made(rows=ROWS[3:5])
    with (
        tables.judge.library()
        .load_table(name)
        .update_schema(allow_incompatible_changes=True) as update
    ):
        update.update_column("u", required=True)

    error = tables.run(f"INSERT INTO {name} (id) SELECT 1").error

    assert error is not None
    assert "leaves out column u, which is NOT NULL" in error.message
    tables.done(f"UPDATE {name} SET n = 1 WHERE id = 3")
    tables.assert_rows(name, [{**ROWS[3], "n": 1}, ROWS[4]])


def test_columns_of_a_newer_schema(tables: Tables) -> None:
    """Files get the columns that they lack, under their new names, as Java writes them."""
    name = tables.made(columns=("id", "n", "t"))
    with tables.loaded(name).update_schema() as update:
        update.add_column("late", schema_of().find_type("u"))
        update.rename_column("t", "time")
    expected = [
        {"id": each["id"], "n": each["n"], "time": each["t"], "late": None} for each in ROWS
    ]

    tables.done(f"UPDATE {name} SET n = 5 WHERE id = 3")

    expected[3]["n"] = 5
    tables.assert_rows(name, expected)
    by_java = tables.made(columns=("id", "n", "t", "u"))
    ((*_, java_time, java_uuid),) = tables.elements(by_java)
    ((*_, time, late),) = tables.elements(name)
    kept = footers.ElementField.NAME
    assert {**java_time, kept: None} == {**time, kept: None}
    assert {**java_uuid, kept: None} == {**late, kept: None}


def test_spark_reads_what_is_rewritten(tables: Tables) -> None:
    name = tables.made(MODES[1], columns=("id", "u", "f"))
    tables.done(f"UPDATE {name} SET id = id + 100 WHERE id = 3")
    tables.done(f"DELETE FROM {name} WHERE id < 8")

    rows = tables.judge.sql(f"SELECT id, u, f FROM {CATALOG}.{name} ORDER BY id")

    expected = [ROWS[8], {**ROWS[3], "id": 103}]
    assert [row["u"] for row in rows] == [each["u"] and str(each["u"]) for each in expected]
    assert [row["f"] and bytes(row["f"]) for row in rows] == [each["f"] for each in expected]


def test_rows_that_are_replaced(tables: Tables) -> None:
    name = tables.made()
    tables.done(f"DELETE FROM {name} WHERE id = 1", dry_run=True)
    tables.done(f"INSERT INTO {name} (id) SELECT 1", dry_run=True)
    tables.assert_rows(name, ROWS)

    tables.done(f"INSERT OVERWRITE {name} (id, n) SELECT 1, 2")
    tables.assert_rows(name, [new(1, 2)])
    tables.done(f"TRUNCATE TABLE {name}")
    tables.assert_rows(name, [])


def test_partitions(tables: Tables) -> None:
    name = tables.made(rows=(), partition=("n", "identity"))
    tables.done(f"INSERT INTO {name} (id, n) VALUES (1, 1), (2, 2), (3, 3)")

    moves = tables.refused(f"UPDATE {name} SET n = 1 WHERE id = 2")
    tables.done(f"ALTER TABLE {name} DROP PARTITION (n = 3)")
    tables.done(f"UPDATE {name} SET id = 5 WHERE n = 2")

    assert "moves rows, whose values of u, of the type uuid, cannot be carried" in moves
    tables.assert_rows(name, [new(1, 1), new(5, 2)])


@pytest.mark.parametrize("transform", ["identity", "bucket[4]"])
def test_partitions_of_such_a_column(tables: Tables, transform: str) -> None:
    name = tables.made(columns=("id", "u"), rows=(), partition=("u", transform))
    values = ", ".join(f"({each['id']}, '{each['u']}')" for each in ROWS[:2])
    tables.judge.sql(f"INSERT INTO {CATALOG}.{name} VALUES {values}")

    found = tables.query("SELECT id FROM s0 ORDER BY id", name)
    message = tables.refused(f"DELETE FROM {name} WHERE id = 1")

    assert found.query is not None, found.error
    assert found.query.rows == ((0,), (1,))
    assert "column u has the type uuid, and partitions are or were made of it" in message


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id, n FROM s0 WHERE id < 2 ORDER BY id", ((0, 0), (1, 10))),
        ("SELECT count(*) FROM s0", ((9,),)),
        ("WITH c AS (SELECT id FROM s0) SELECT * FROM c WHERE id = 3", ((3,),)),
        ("SELECT a.id FROM s0 a JOIN s0 b ON a.id = b.n", ((0,),)),
    ],
)
def test_queries_of_other_columns(
    tables: Tables, source: str, text: str, rows: tuple[tuple[int, ...], ...]
) -> None:
    result = tables.query(text, source)

    assert result.query is not None, result.error
    assert result.query.rows == rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s0",
        "TABLE s0",
        "SELECT u FROM s0",
        "SELECT id FROM s0 WHERE t IS NULL",
        "SELECT id FROM s0 ORDER BY f",
        "SELECT count(s) FROM s0",
        "SELECT id FROM (SELECT * FROM s0)",
        "SELECT a.id FROM s0 a JOIN s0 b USING (u)",
        "SELECT id FROM s0 WHERE EXISTS (SELECT 1 FROM s0 b WHERE b.u = s0.u)",
        "SELECT * FROM s0 WHERE false",
    ],
)
def test_queries_that_use_them(tables: Tables, source: str, text: str) -> None:
    error = tables.query(text, source).error

    assert error is not None
    assert error.code == ErrorCode.NOT_SUPPORTED.name
    assert "has the type" in error.message


@pytest.fixture(scope="module")
def source(tables: Tables) -> str:
    return tables.made()


def test_a_use_that_was_not_seen_ends_the_statement(tables: Tables, source: str) -> None:
    connector, name = opened(tables.judge), TableName.parse(source)
    frame = open_source(tables.spark, TableSource("s0", name), connector, {}).frame

    assert frame.where("id = 3").select("n").collect()[0].n == 30
    with pytest.raises(Exception, match="column u has the type uuid"):
        frame.selectExpr("count(u)").collect()


def test_a_table_that_was_to_be_created(tables: Tables, source: str) -> None:
    columns = (ColumnSpec("id", "INT", nullable=False), ColumnSpec("u", "STRING"))

    with pytest.raises(JobError) as caught:
        opened(tables.judge).metadata.create_table(
            TableName.parse(source), CreateTableSpec(columns)
        )

    assert caught.value.code is ErrorCode.TABLE_DIFFERS
    assert "column u is uuid, not STRING" in caught.value.message


def of_version_3(tables: Tables, column: str, *rows: str) -> str:
    """The name of a table of Spark with Iceberg with ``id`` and another column."""
    name = f"db.t{uuid.uuid4().hex[:8]}"
    tables.judge.sql(
        f"CREATE TABLE {CATALOG}.{name} (id INT, {column}) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')",
        *(f"INSERT INTO {CATALOG}.{name} SELECT {row}" for row in rows),
    )
    return name


def test_types_of_version_3(tables: Tables) -> None:
    name = of_version_3(tables, "v BIGINT", "id, 1000 FROM VALUES (1), (2) AS r (id)")
    tables.judge.sql(f"DELETE FROM {CATALOG}.{name} WHERE id = 2")
    # Spark has no statement for this type.
    path = Path(urlsplit(tables.loaded(name).metadata_location).path)
    text = path.read_text()
    assert text.count('"type":"long"') == 1
    path.write_text(text.replace('"type":"long"', '"type":"timestamp_ns"'))

    found, refused = (tables.query(f"SELECT {each} FROM s0", name) for each in ("id", "*"))

    assert found.query is not None, found.error
    assert found.query.rows == ((1,),)
    assert refused.error is not None
    assert "column v has the type timestamp_ns" in refused.error.message


def test_a_type_that_pyiceberg_does_not_know(tables: Tables) -> None:
    name = of_version_3(tables, "v VARIANT")

    error = tables.query("SELECT id FROM s0", name).error

    assert error is not None
    assert error.code == ErrorCode.NOT_SUPPORTED.name
    assert "fields.1.type: Value error, Unsupported field type: 'variant'" in error.message
