"""Paimon tables that this project alters, as Java reads them and goes on; and the same by Java."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_merge.sql.alter_table import parse_alter_table
from airflow_provider_merge.sql.create_table import parse_create_table
from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.run import run
from tests.judge.judge import facts_from_java
from tests.judge.tables import Warehouse
from tests.judge.writer import JavaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "city", "type": "STRING"},
        {"id": 0, "name": "zip", "type": "INT"},
    ],
}
KINDS = {
    "id": "BIGINT NOT NULL",
    "v": "INT",
    "a": ADDRESS,
    "t": "VARCHAR(5)",
    "f": "FLOAT",
    "l": {"type": "ARRAY", "element": ADDRESS},
    "d": "DECIMAL(5, 2)",
}
BERLIN = {"city": "Berlin", "zip": 10115}
ROWS = [
    {"id": 1, "v": 10, "a": BERLIN, "t": "x", "f": 0.5, "l": [BERLIN, None], "d": 1},
    {"id": 2, "v": None, "a": None, "t": None, "f": None, "l": None, "d": None},
]
# In the words of SQL, and Java's own changes.
STATEMENTS: Sequence[tuple[str, tuple[Any, ...]]] = (
    ("ADD COLUMN n DECIMAL(5, 2)", ("add", ["n"], "DECIMAL(5, 2)")),
    ("ADD COLUMN a.street STRING", ("add", ["a", "street"], "STRING")),
    ("ADD COLUMN l.element.x INT", ("add", ["l", "element", "x"], "INT")),
    ("RENAME COLUMN v TO w", ("rename", ["v"], "w")),
    ("RENAME COLUMN A.City TO town", ("rename", ["a", "city"], "town")),
    ("ALTER COLUMN w TYPE BIGINT", ("type", ["w"], "BIGINT")),
    ("ALTER COLUMN a.zip TYPE BIGINT", ("type", ["a", "zip"], "BIGINT")),
    ("ALTER COLUMN t TYPE STRING", ("type", ["t"], "STRING")),
    ("ALTER COLUMN f TYPE DOUBLE", ("type", ["f"], "DOUBLE")),
    ("ALTER COLUMN d TYPE DECIMAL(9, 3)", ("type", ["d"], "DECIMAL(9, 3)")),
    ("DROP COLUMN l.element.zip", ("drop", ["l", "element", "zip"])),
    ("ALTER COLUMN id DROP NOT NULL", ("nullable", ["id"], True)),
    ("ALTER COLUMN w COMMENT 'a value'", ("comment", ["w"], "a value")),
    ("ALTER COLUMN w SET DEFAULT 8", ("default", ["w"], "8")),
    ("ALTER COLUMN n FIRST", ("first", ["n"])),
    ("SET TBLPROPERTIES ('x' = 'y')", ("option", ["x"], "y")),
)
DEFAULTS = (
    "CREATE TABLE d.t (id BIGINT, s STRING DEFAULT 'x', d DATE DEFAULT DATE '2026-01-31', "
    "n DECIMAL(5, 2) DEFAULT 1.5, o BOOLEAN DEFAULT true, z TIMESTAMP_NTZ DEFAULT "
    "TIMESTAMP '2026-01-31 01:00:00')"
)


def altered(warehouse: Warehouse, text: str) -> None:
    target, spec = parse_alter_table(f"ALTER TABLE d.t {text}")
    catalog = CatalogSpec("paimon", str(warehouse.path))
    result = run(JobRequest(str(uuid.uuid4()), target, catalog, spec), None)
    assert result.error is None, result.error


def merged(spark: SparkSession, warehouse: Warehouse, text: str, source: str) -> None:
    parsed = parse_statement(text, ["s"], "d")
    request = JobRequest(
        str(uuid.uuid4()),
        parsed.target,
        CatalogSpec("paimon", str(warehouse.path)),
        parsed.statement,
        (SqlSource("s", source), *parsed.sources),
    )
    result = run(request, spark)
    assert result.error is None, result.error


def schema(warehouse: Warehouse, name: str) -> dict[str, Any]:
    found: dict[str, Any] = facts_from_java(warehouse.path, name).schema
    found["options"].pop("path", None)
    return {k: v for k, v in found.items() if k not in ("timeMillis", "version")}


def test_each_statement_does_what_java_does(warehouse: Warehouse) -> None:
    JavaTable.of_types(warehouse.path, "d.t", KINDS)
    theirs = JavaTable.of_types(warehouse.path, "d.theirs", KINDS)

    for text, change in STATEMENTS:
        altered(warehouse, text)
        theirs = theirs.alter(change)
        assert schema(warehouse, "d.t") == schema(warehouse, "d.theirs"), text


@pytest.mark.parametrize(
    "options",
    [{}, {"deletion-vectors.enabled": "true"}, {"bucket": "2", "bucket-key": "id"}],
    ids=["cow", "vectors", "buckets"],
)
def test_both_go_on(spark: SparkSession, warehouse: Warehouse, options: Mapping[str, str]) -> None:
    table = JavaTable.of_types(warehouse.path, "d.t", KINDS, (), options)
    table.append_rows(ROWS)
    for text, _ in STATEMENTS:
        if not (options and " id " in text):
            altered(warehouse, text)

    found = {row["id"]: row for row in warehouse.both_readers("d.t")}
    town = {"town": "Berlin", "zip": 10115, "street": None}
    assert (found[1]["w"], found[1]["a"], found[1]["t"]) == (10, town, "x")
    assert found[1]["l"] == [{"city": "Berlin", "x": None}, None]
    assert found[2]["w"] is None
    merged(
        spark,
        warehouse,
        "MERGE INTO d.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
        "SELECT id, CAST(7.5 AS DECIMAL(5, 2)) AS n FROM range(1, 4)",
    )
    table = table.reloaded()
    new = dict.fromkeys(table.kinds)
    table.append_rows([{**new, "id": 9, "w": 1}])
    altered(warehouse, "DROP COLUMN n")
    found = {row["id"]: row for row in warehouse.both_readers("d.t")}
    # New rows of this project have the default.
    assert {i: row["w"] for i, row in found.items()} == {1: 10, 2: None, 3: 8, 9: 1}
    assert "n" not in found[1]


def test_a_table_with_defaults_and_one_like_it(spark: SparkSession, warehouse: Warehouse) -> None:
    catalog = CatalogSpec("paimon", str(warehouse.path))
    warehouse.path.mkdir(exist_ok=True)
    for text in (
        DEFAULTS,
        "CREATE TABLE d.copy LIKE d.t",
    ):
        target, spec = parse_create_table(text)
        result = run(JobRequest(str(uuid.uuid4()), target, catalog, spec), None)
        assert result.error is None, result.error

    for name in ("d.t", "d.copy"):
        merged(spark, warehouse, f"INSERT INTO {name} (id) SELECT * FROM s", "SELECT 1L AS id")
        (row,) = warehouse.both_readers(name)
        texts = [str(row[each]) for each in ("s", "d", "n", "o", "z")]
        assert texts == ["x", "2026-01-31", "1.50", "True", "1769821200000000000"]
    assert schema(warehouse, "d.t") == schema(warehouse, "d.copy")
