"""Columns of types that Spark does not have: statements that do not use them carry their values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.request import SqlSource, TableName, TableSource
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.errors import ErrorCode, JobError
from tests.connectors.iceberg.opaque_tables import (
    MODES,
    OPAQUE,
    ROWS,
    Tables,
    new,
    schema_of,
    tables,
)
from tests.connectors.iceberg.tables import opened
from tests.judge.iceberg_spark import CATALOG

__all__ = ["tables"]


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


def test_a_table_that_was_to_be_created(tables: Tables) -> None:
    name = TableName.parse(tables.made(rows=()))
    columns = (ColumnSpec("id", "INT", nullable=False), ColumnSpec("u", "STRING"))

    with pytest.raises(JobError) as caught:
        opened(tables.judge).metadata.create_table(name, CreateTableSpec(columns))

    assert caught.value.code is ErrorCode.TABLE_DIFFERS
    assert "column u is uuid, not STRING" in caught.value.message


@pytest.mark.parametrize("mode", MODES)
def test_files_of_pyiceberg(tables: Tables, mode: str) -> None:
    """They have no UUID, and times of UTC; new ones have the types that Java writes."""
    columns = ("id", "u", "t")
    name = tables.made(mode, columns=columns, rows=())
    table = tables.loaded(name)
    rows = [{each: row[each] for each in columns} for row in ROWS]
    stored = [{**row, "u": row["u"] and row["u"].bytes} for row in rows]
    table.append(pa.Table.from_pylist(stored, schema=table.schema().as_arrow()))
    (by_pyiceberg,), (by_java,) = map(tables.elements, (name, tables.made(columns=columns)))

    tables.done(f"UPDATE {name} SET id = 30 WHERE id = 3")

    marks = mode == MODES[1]
    assert by_pyiceberg != by_java
    assert tables.elements(name).count(by_java) == 1
    assert tables.elements(name).count(by_pyiceberg) == (1 if marks else 0)
    rows[3]["id"] = 30
    # Java takes a UUID of pyiceberg's files for bytes.
    tables.assert_rows(name, rows, by_java=not marks)
