"""INSERT, TRUNCATE and DROP PARTITION: each piece of the grammar ends in the contract's field."""

from __future__ import annotations

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.request import SqlSource, TableName, TableSource
from tests.sql.reading import read, refusal

SOURCE = "insert_source"
STATEMENTS = {
    "INSERT OVERWRITE d.t SELECT 1": InsertOverwriteSpec(SOURCE, "table"),
    "insert overwrite table d.t select 1;": InsertOverwriteSpec(SOURCE, "table"),
    "INSERT OVERWRITE d.t PARTITION (a = 1, `b c` = f('x, y'), d == DATE '2026-01-01') FROM d.s": (
        InsertOverwriteSpec(
            SOURCE, "static", {"a": "1", "b c": "f('x, y')", "d": "DATE '2026-01-01'"}
        )
    ),
    "INSERT OVERWRITE d.t PARTITION (a = 1, b) SELECT 1": InsertOverwriteSpec(
        SOURCE, "static", {"a": "1"}, partition_columns=("b",)
    ),
    "INSERT OVERWRITE d.t PARTITION (a) SELECT 1": InsertOverwriteSpec(
        SOURCE, "table", partition_columns=("a",)
    ),
    "INSERT OVERWRITE d.t PARTITION (a = NULL) (b, `c d`) (SELECT 1, 2)": InsertOverwriteSpec(
        SOURCE, "static", {"a": "NULL"}, ("b", "`c d`")
    ),
    "INSERT OVERWRITE d.t BY NAME SELECT 1 AS a": InsertOverwriteSpec(
        SOURCE, "table", by_name=True
    ),
    "INSERT INTO d.t VALUES (1, 'a'), (2, 'b')": InsertIntoSpec(SOURCE),
    "INSERT INTO TABLE d.t (select, a) SELECT 1, 2": InsertIntoSpec(
        SOURCE, columns=("select", "a")
    ),
    "INSERT INTO d.t ((SELECT 1) UNION ALL SELECT 2)": InsertIntoSpec(SOURCE),
    "INSERT INTO d.t PARTITION (a = 1) BY NAME TABLE d.s": InsertIntoSpec(
        SOURCE, {"a": "1"}, by_name=True
    ),
    "INSERT WITH SCHEMA EVOLUTION INTO d.t BY NAME SELECT 1 AS a": InsertIntoSpec(
        SOURCE, by_name=True, schema_evolution=True
    ),
    "insert with schema evolution overwrite table d.t partition (a = 1) select 1": (
        InsertOverwriteSpec(SOURCE, "static", {"a": "1"}, schema_evolution=True)
    ),
    "TRUNCATE TABLE d.t": TruncateTableSpec(),
    "TRUNCATE TABLE d.t PARTITION (a = 1, b = 'x');": TruncateTableSpec({"a": "1", "b": "'x'"}),
    "ALTER TABLE d.t DROP PARTITION (a = 1)": DropPartitionsSpec(({"a": "1"},)),
    "ALTER TABLE d.t DROP IF EXISTS PARTITION (a = 1), PARTITION (a = 2) PURGE": (
        DropPartitionsSpec(({"a": "1"}, {"a": "2"}), if_exists=True)
    ),
}


@pytest.mark.parametrize(("text", "statement"), STATEMENTS.items(), ids=STATEMENTS)
def test_statement(text, statement):
    parsed = read(text)
    assert parsed.statement == statement
    assert parsed.target == TableName("d", "t")


def test_the_query_becomes_a_source_that_reads_views():
    parsed = read(
        "WITH new AS (SELECT * FROM d.s WHERE a > 1)\n"
        "INSERT OVERWRITE d.t\nSELECT * FROM new JOIN d.t USING (id); -- done",
    )
    assert parsed.sources == (
        TableSource("d__s", TableName("d", "s")),
        SqlSource("new", "SELECT * FROM d__s AS s WHERE a > 1"),
        TableSource("d__t", TableName("d", "t")),
        SqlSource(SOURCE, "SELECT * FROM new JOIN d__t AS t USING (id)"),
    )


def test_a_given_source_keeps_its_name():
    parsed = read("INSERT INTO d.t SELECT * FROM landed", "landed")
    assert parsed.sources == (SqlSource(SOURCE, "SELECT * FROM landed"),)


SYNTAX = {
    "INSERT d.t SELECT 1": (1, 8, "expected INTO or OVERWRITE, found 'd'"),
    "INSERT WITH EVOLUTION INTO d.t SELECT 1": (1, 8, "expected INTO or OVERWRITE, found 'WITH'"),
    "INSERT INTO d.t": (1, 16, "expected a query, found the end"),
    "INSERT INTO d.t (a)": (1, 20, "expected a query, found the end"),
    "INSERT INTO d.t d.s": (1, 17, "expected a query"),
    "INSERT INTO d.t BY NAME (a) SELECT 1": (1, 26, "expected a query"),
    "INSERT OVERWRITE d.t PARTITION (a = ) SELECT 1": (1, 37, "expected a value, found ')'"),
    "INSERT OVERWRITE d.t PARTITION () SELECT 1": (1, 33, "expected the name of a partition"),
    "INSERT OVERWRITE d.t PARTITION (a.b = 1) SELECT 1": (1, 33, "a name of one part"),
    "INSERT OVERWRITE d.t PARTITION (a > 1) SELECT 1": (1, 35, "expected ), found '>'"),
    "INSERT INTO d.t SELECT 1; SELECT 2": (1, 27, "a second statement begins"),
    "WITH a AS (SELECT 1) TRUNCATE TABLE d.t": (1, 22, "TRUNCATE does not start a statement"),
    "TRUNCATE d.t": (1, 10, "expected TABLE, found 'd'"),
    "TRUNCATE TABLE d.t PARTITION (a)": (1, 20, "a has no value"),
    "TRUNCATE TABLE d.t WHERE a": (1, 20, "expected the end of the statement"),
    "ALTER TABLE d.t DROP PARTITION": (1, 31, "expected (, found the end"),
    "ALTER TABLE d.t DROP d": (1, 22, "expected PARTITION, found 'd'"),
}


@pytest.mark.parametrize(("sql", "expected"), SYNTAX.items(), ids=SYNTAX)
def test_syntax_error(sql, expected):
    line, column, problem = expected
    error = refusal(sql)
    assert error.code.name == "SYNTAX_ERROR"
    assert error.message.startswith(f"line {line}, column {column}: ")
    assert problem in error.message


REFUSED = {
    "INSERT OVERWRITE DIRECTORY '/x' SELECT 1": "only tables are written",
    "INSERT OVERWRITE d.t PARTITION (a = 1) IF NOT EXISTS SELECT 1": "INSERT takes no IF",
    "INSERT INTO d.t REPLACE WHERE a = 1 SELECT 1": "INSERT takes no REPLACE",
    "INSERT INTO d.t VALUES (1, default), (2, 3) LIMIT 1": "DEFAULT is not supported in VALUES",
    "INSERT INTO d.t SELECT 1, DEFAULT UNION SELECT 2, 3": "DEFAULT is not supported in one of",
    "INSERT INTO d.t FROM d.s |> SELECT DEFAULT": "DEFAULT is not supported in one of",
    "ALTER TABLE d.t ADD COLUMN a INT": "only DROP PARTITION",
    "ALTER TABLE d.t DROP COLUMN a": "only DROP PARTITION",
}


@pytest.mark.parametrize(("sql", "problem"), REFUSED.items(), ids=REFUSED)
def test_refused(sql, problem):
    error = refusal(sql)
    assert error.code.name == "NOT_SUPPORTED"
    assert problem in error.message


def test_a_partition_column_twice():
    error = refusal("INSERT OVERWRITE d.t PARTITION (a = 1, A = 2) SELECT 1")
    assert error.code.name == "REQUEST_INVALID"
    assert "line 1, column 40: A occurs more than once" in error.message
