"""UPDATE and DELETE: each piece of the grammar ends in the contract's field."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.statements import Assignment, DeleteSpec, UpdateSpec
from tests.sql.reading import delete, read, update

DELETES = {
    "DELETE FROM d.t": DeleteSpec("t"),
    "delete from d.t where a = 1;": DeleteSpec("t", "a = 1"),
    "DELETE FROM d.t AS x WHERE x.a IS NULL ; ;": DeleteSpec("x", "x.a IS NULL"),
    "DELETE FROM d.t x": DeleteSpec("x"),
    "DELETE FROM d.t WHERE /* all */ true -- really": DeleteSpec("t", "true"),
}


@pytest.mark.parametrize(("text", "statement"), DELETES.items(), ids=DELETES)
def test_delete(text, statement):
    assert delete(text) == statement
    assert read(text).target == TableName("d", "t")


UPDATES = {
    "UPDATE d.t SET a = 1": UpdateSpec("t", (Assignment("a", "1"),)),
    "UPDATE d.t AS x SET x.a = b, c.d.e = DEFAULT WHERE x.b > 0": UpdateSpec(
        "x", (Assignment("x.a", "b"), Assignment("c.d.e", "DEFAULT")), "x.b > 0"
    ),
    "UPDATE d.t set a = f(b, 'c,d'), `b` = m['x, y'] where true": UpdateSpec(
        "t", (Assignment("a", "f(b, 'c,d')"), Assignment("`b`", "m['x, y']")), "true"
    ),
}


@pytest.mark.parametrize(("text", "statement"), UPDATES.items(), ids=UPDATES)
def test_update(text, statement):
    assert update(text) == statement


def test_subqueries_in_where_read_views():
    parsed = read(
        "DELETE FROM d.t WHERE id IN (SELECT id FROM d.gone) AND NOT EXISTS "
        "(SELECT 1 FROM kept AS k WHERE k.id = t.id)",
        "kept",
    )
    assert parsed.statement == DeleteSpec(
        "t",
        "id IN (SELECT id FROM d__gone AS gone) AND NOT EXISTS "
        "(SELECT 1 FROM kept AS k WHERE k.id = t.id)",
    )
    assert parsed.sources == (TableSource("d__gone", TableName("d", "gone")),)


def test_subqueries_in_values_read_views():
    parsed = read(
        "UPDATE d.t SET a = (SELECT max(a) FROM d.s), b = 1 + (FROM kept AS k SELECT min(k.b)), "
        "c = (SELECT max(c) FROM d.t) WHERE a IN (TABLE d.s)",
        "kept",
    )
    assert parsed.statement == UpdateSpec(
        "t",
        (
            Assignment("a", "(SELECT max(a) FROM d__s AS s)"),
            Assignment("b", "1 + (FROM kept AS k SELECT min(k.b))"),
            Assignment("c", "(SELECT max(c) FROM d__t AS t)"),
        ),
        "a IN (TABLE d__s)",
    )
    assert parsed.sources == (
        TableSource("d__s", TableName("d", "s")),
        TableSource("d__t", TableName("d", "t")),
    )


def test_a_byte_order_mark_and_windows_lines():
    assert delete("\ufeffDELETE\r\nFROM d.t -- all\r\nWHERE a = 1\r\n") == DeleteSpec("t", "a = 1")


def test_deeply_nested_queries():
    query = "SELECT * FROM (" * 190 + "d.a" + ")" * 190
    where = delete(f"DELETE FROM d.t WHERE a IN ({query})").where
    assert where == f"a IN ({query.replace('d.a', 'd__a AS a')})"
