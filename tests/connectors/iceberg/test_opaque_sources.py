"""Sources with columns of types that Spark does not have: queries of the others."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spark_jobs.contract.maintenance import CreateTagSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, TableName, TableSource
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.errors import ErrorCode
from spark_jobs.run import run
from tests.connectors.iceberg.opaque_tables import Tables, tables
from tests.connectors.iceberg.tables import catalog_of, opened
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
    frame = open_source(tables.spark, TableSource("s0", name), connector, PinnedTables()).frame

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


@pytest.mark.parametrize("kind", ["timestamp_ns", "geometry(OGC:CRS84)", "geography"])
def test_types_of_version_3(tables: Tables, kind: str) -> None:
    name = of_version_3(tables, "v BIGINT", "id, 1000 FROM VALUES (1), (2) AS r (id)")
    tables.judge.sql(f"DELETE FROM {CATALOG}.{name} WHERE id = 2")
    # Spark has no statement for this type.
    path = Path(urlsplit(tables.loaded(name).metadata_location).path)
    text = path.read_text()
    assert text.count('"type":"long"') == 1
    path.write_text(text.replace('"type":"long"', f'"type":"{kind}"'))

    found, refused = (tables.query(f"SELECT {each} FROM s0", name) for each in ("id", "*"))

    assert found.query is not None, found.error
    assert found.query.rows == ((1,),)
    assert refused.error is not None
    assert f"column v has the type {kind.partition('(')[0]}" in refused.error.message


@pytest.mark.parametrize("kind", ["VARIANT", "ARRAY<VARIANT>"])
def test_types_that_pyiceberg_does_not_know(tables: Tables, kind: str) -> None:
    value = "parse_json('{\"a\": 1}')" if kind == "VARIANT" else "array(parse_json('2'), NULL)"
    name = of_version_3(tables, f"v {kind}", f"id, {value} FROM VALUES (1), (2) AS r (id)")

    before = opened(tables.judge).metadata.load_table(TableName.parse(name)).snapshot_id
    queries = ("SELECT id FROM s0 WHERE id > 1", "SELECT count(*) FROM s0", "SELECT * FROM s0")
    found, count, refused = (tables.query(each, name) for each in queries)
    changed = tables.run(f"DELETE FROM {name} WHERE id = 1")

    assert found.query is not None, found.error
    assert found.query.rows == ((2,),)
    assert count.query is not None, count.error
    assert count.query.rows == ((2,),)
    for error in (refused.error, changed.error):
        assert error is not None
        assert error.code == ErrorCode.NOT_SUPPORTED.name
        assert "variant" in error.message
    assert opened(tables.judge).metadata.load_table(TableName.parse(name)).snapshot_id == before


def test_java_reads_a_table_with_such_a_type_after_a_tag_and_a_rollback(tables: Tables) -> None:
    name = of_version_3(
        tables, "v VARIANT", *(f"{each}, parse_json('[{each}]')" for each in (1, 2))
    )
    table = f"{CATALOG}.{name}"

    def care(spec: CreateTagSpec | RollbackSpec) -> None:
        request = JobRequest(
            uuid.uuid4().hex, TableName.parse(name), catalog_of(tables.judge), spec
        )
        result = run(request, None)
        assert result.error is None, result.error

    care(CreateTagSpec("kept"))
    tables.judge.sql(f"DELETE FROM {table} WHERE id = 1")
    care(RollbackSpec(tag="kept", force=True))
    tables.judge.sql(f"INSERT INTO {table} SELECT 3, parse_json('[3]')")

    query = f"SELECT id, to_json(v) AS v FROM {table}"
    kept = [{"id": each, "v": f"[{each}]"} for each in (1, 2, 3)]
    assert tables.judge.sql(f"{query} ORDER BY id") == kept
    assert tables.judge.sql(f"{query} VERSION AS OF 'kept' ORDER BY id") == kept[:2]
