"""Sources with columns of types that Spark does not have: queries of the others."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.errors import ErrorCode
from tests.connectors.iceberg.opaque_tables import Tables, tables
from tests.connectors.iceberg.tables import opened
from tests.judge.iceberg_spark import CATALOG

__all__ = ["tables"]


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
