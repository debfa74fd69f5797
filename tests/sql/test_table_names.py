"""Table names in queries give way to views, by position; the rest stays as it was written."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.parser import parse_where
from spark_jobs.contract.request import SqlSource, TableName, TableSource
from tests.sql.reading import delete, merge, read, refusal

MERGE = "MERGE INTO d.t AS t USING ({}) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"

# Queries over d.a, d.b (both replaced), the named source src, and what becomes of them.
QUERIES = {
    "SELECT * FROM d.a": "SELECT * FROM d__a AS a",
    "SELECT * FROM d.a AS x": "SELECT * FROM d__a AS x",
    "SELECT * FROM d.a x, d.b": "SELECT * FROM d__a x, d__b AS b",
    "select * from `d`.`a`": "select * from d__a AS `a`",
    "SELECT * FROM d . a WHERE 1=1": "SELECT * FROM d__a AS a WHERE 1=1",
    "SELECT * FROM src": "SELECT * FROM src",
    "SELECT * FROM SRC s JOIN d.a USING (id), d.b": (
        "SELECT * FROM SRC s JOIN d__a AS a USING (id), d__b AS b"
    ),
    "SELECT a, (SELECT max(b) FROM d.b) FROM d.a": (
        "SELECT a, (SELECT max(b) FROM d__b AS b) FROM d__a AS a"
    ),
    "SELECT * FROM (SELECT * FROM d.a) x JOIN d.b ON f(x.a, 1) = b.a, src": (
        "SELECT * FROM (SELECT * FROM d__a AS a) x JOIN d__b AS b ON f(x.a, 1) = b.a, src"
    ),
    "SELECT * FROM (d.a JOIN d.b ON a.id = b.id)": (
        "SELECT * FROM (d__a AS a JOIN d__b AS b ON a.id = b.id)"
    ),
    "SELECT * FROM ((SELECT 1 FROM d.a) UNION (SELECT 2 FROM d.b)) u": (
        "SELECT * FROM ((SELECT 1 FROM d__a AS a) UNION (SELECT 2 FROM d__b AS b)) u"
    ),
    "(SELECT 1 FROM d.a) UNION ALL SELECT 2 FROM d.b ORDER BY 1, 2": (
        "(SELECT 1 FROM d__a AS a) UNION ALL SELECT 2 FROM d__b AS b ORDER BY 1, 2"
    ),
    "SELECT extract(YEAR FROM day), trim(BOTH 'x' FROM n) FROM d.a GROUP BY day, n": (
        "SELECT extract(YEAR FROM day), trim(BOTH 'x' FROM n) FROM d__a AS a GROUP BY day, n"
    ),
    "SELECT trim(BOTH (SELECT x FROM d.b) FROM n) FROM d.a": (
        "SELECT trim(BOTH (SELECT x FROM d__b AS b) FROM n) FROM d__a AS a"
    ),
    "SELECT * FROM d.a WHERE x IS DISTINCT FROM y AND x IS NOT DISTINCT FROM z": (
        "SELECT * FROM d__a AS a WHERE x IS DISTINCT FROM y AND x IS NOT DISTINCT FROM z"
    ),
    "SELECT DISTINCT x FROM d.a": "SELECT DISTINCT x FROM d__a AS a",
    "SELECT * FROM d.a LATERAL VIEW explode(xs) e AS x, y": (
        "SELECT * FROM d__a AS a LATERAL VIEW explode(xs) e AS x, y"
    ),
    "SELECT * FROM d.a, LATERAL (SELECT * FROM d.b WHERE b.x = a.x)": (
        "SELECT * FROM d__a AS a, LATERAL (SELECT * FROM d__b AS b WHERE b.x = a.x)"
    ),
    "SELECT * FROM d.a, LATERAL explode(a.xs) AS e(x)": (
        "SELECT * FROM d__a AS a, LATERAL explode(a.xs) AS e(x)"
    ),
    "SELECT * FROM range(10), d.a": "SELECT * FROM range(10), d__a AS a",
    "SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b), d.a": (
        "SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b), d__a AS a"
    ),
    "SELECT * FROM VALUES (1), (2) v(a) JOIN d.a": (
        "SELECT * FROM VALUES (1), (2) v(a) JOIN d__a AS a"
    ),
    "VALUES (1, 'x'), (2, 'y')": "VALUES (1, 'x'), (2, 'y')",
    "SELECT * FROM d.a TABLESAMPLE (10 PERCENT) REPEATABLE (1)": (
        "SELECT * FROM d__a TABLESAMPLE (10 PERCENT) REPEATABLE (1) AS a"
    ),
    "SELECT * FROM d.a TABLESAMPLE (10 ROWS) x": "SELECT * FROM d__a TABLESAMPLE (10 ROWS) x",
    "SELECT * FROM d.a PIVOT (sum(x) FOR k IN (1, 2)), d.b": (
        "SELECT * FROM d__a AS a PIVOT (sum(x) FOR k IN (1, 2)), d__b AS b"
    ),
    "TABLE d.a": "TABLE d__a",
    "SELECT 1 UNION TABLE d.a": "SELECT 1 UNION TABLE d__a",
    "FROM d.a SELECT x, y": "FROM d__a AS a SELECT x, y",
    "FROM d.a |> JOIN d.b USING (id) |> SELECT x, y": (
        "FROM d__a AS a |> JOIN d__b AS b USING (id) |> SELECT x, y"
    ),
    "WITH c AS (SELECT * FROM d.a) SELECT * FROM c, d.b": (
        "WITH c AS (SELECT * FROM d__a AS a) SELECT * FROM c, d__b AS b"
    ),
    "WITH c(x, y) AS (SELECT * FROM d.a), e (SELECT * FROM c) SELECT * FROM E": (
        "WITH c(x, y) AS (SELECT * FROM d__a AS a), e (SELECT * FROM c) SELECT * FROM E"
    ),
    "SELECT t.from, `from`.x, 'FROM d.b' /* FROM d.b */ FROM d.a -- , d.b\n , src": (
        "SELECT t.from, `from`.x, 'FROM d.b' /* FROM d.b */ FROM d__a AS a -- , d.b\n , src"
    ),
    "WITH overlay (SELECT * FROM d.a) SELECT * FROM overlay": (
        "WITH overlay (SELECT * FROM d__a AS a) SELECT * FROM overlay"
    ),
    "SELECT * FROM src x JOIN d.a ON x.n LIKE ALL ('a', 'b'), d.b": (
        "SELECT * FROM src x JOIN d__a AS a ON x.n LIKE ALL ('a', 'b'), d__b AS b"
    ),
    "SELECT /*+ BROADCAST(a) */ * FROM d.a": "SELECT /*+ BROADCAST(a) */ * FROM d__a AS a",
    "SELECT * FROM d.a WINDOW w AS (PARTITION BY x), v AS (ORDER BY y)": (
        "SELECT * FROM d__a AS a WINDOW w AS (PARTITION BY x), v AS (ORDER BY y)"
    ),
}


# Of other engines: Spark wants a SELECT.
FROM_FIRST = {
    "FROM d.a": "SELECT * FROM d__a AS a",
    "FROM d.a WHERE x IN (FROM d.b)": (
        "SELECT * FROM d__a AS a WHERE x IN (SELECT * FROM d__b AS b)"
    ),
    "FROM d.a x JOIN d.b USING (id) WHERE x.y > 1 ORDER BY id LIMIT 2": (
        "SELECT * FROM d__a x JOIN d__b AS b USING (id) WHERE x.y > 1 ORDER BY id LIMIT 2"
    ),
    "SELECT x FROM (FROM d.a WHERE x > 1)": "SELECT x FROM (SELECT * FROM d__a AS a WHERE x > 1)",
    "FROM d.a UNION ALL FROM d.b WHERE x IS DISTINCT FROM y": (
        "SELECT * FROM d__a AS a UNION ALL SELECT * FROM d__b AS b WHERE x IS DISTINCT FROM y"
    ),
    "FROM d.a SELECT x INTERSECT FROM d.b": (
        "FROM d__a AS a SELECT x INTERSECT SELECT * FROM d__b AS b"
    ),
    "WITH c AS (FROM d.a) FROM c WHERE x": (
        "WITH c AS (SELECT * FROM d__a AS a) SELECT * FROM c WHERE x"
    ),
    "FROM d.a WHERE t.dep = a.dep": "SELECT * FROM d__a AS a WHERE t.dep = a.dep",
    "FROM d.a WHERE a.x NOT IN (FROM d.b WHERE b.y = t.z)": (
        "SELECT * FROM d__a AS a WHERE a.x NOT IN (SELECT * FROM d__b AS b WHERE b.y = t.z)"
    ),
    "FROM (FROM d.a) q JOIN (FROM d.b) r ON q.x = r.x": (
        "SELECT * FROM (SELECT * FROM d__a AS a) q JOIN (SELECT * FROM d__b AS b) r ON q.x = r.x"
    ),
    "FROM d.a, LATERAL (FROM d.b WHERE b.x = a.x)": (
        "SELECT * FROM d__a AS a, LATERAL (SELECT * FROM d__b AS b WHERE b.x = a.x)"
    ),
    "SELECT trim(FROM x), a IS NOT DISTINCT FROM b FROM d.a": (
        "SELECT trim(FROM x), a IS NOT DISTINCT FROM b FROM d__a AS a"
    ),
}


@pytest.mark.parametrize(("query", "expected"), FROM_FIRST.items(), ids=FROM_FIRST)
def test_queries_that_begin_with_from(query, expected):
    where = delete(f"DELETE FROM d.t WHERE EXISTS ({query})").where
    assert where == f"EXISTS ({expected})"
    assert parse_where(f"x NOT IN ({query})")[0] == f"x NOT IN ({expected})"
    assert read(MERGE.format(query)).sources[-1].query == expected
    assert read(f"INSERT INTO d.t {query}").sources[-1].query == expected


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=QUERIES)
def test_in_a_query(query, expected):
    parsed = read(MERGE.format(query), "src")
    *tables, source = parsed.sources
    assert source == SqlSource("merge_source", expected)
    assert {each.table for each in tables} == {
        TableName("d", name[-1]) for name in ("d__a", "d__b") if name in expected
    }


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=QUERIES)
def test_in_a_subquery_of_where(query, expected):
    assert delete(f"DELETE FROM d.t WHERE a + 1 IN ({query})", "src").where == (
        f"a + 1 IN ({expected})"
    )


def test_a_table_read_twice_is_one_source():
    parsed = read(MERGE.format("SELECT * FROM d.a x JOIN D.a y JOIN d.`a` z"))
    names = [source.name for source in parsed.sources]
    assert names == ["d__a", "D__a_2", "merge_source"], "Paimon's names may differ in case"


def test_a_view_never_takes_a_name_of_the_text_or_of_a_source():
    parsed = read(MERGE.format("SELECT d__a, merge_source.x FROM d.a, d__b, d.b"), "D__B")
    assert [source.name for source in parsed.sources] == ["d__a_2", "d__b_2", "merge_source_2"]
    assert parsed.statement.source == "merge_source_2"


def test_names_that_views_can_not_have():
    parsed = read(MERGE.format("SELECT * FROM `1 d`.`ä-b`"))
    view, source = parsed.sources
    assert view == TableSource("_1_d___b", TableName("1 d", "ä-b"))
    assert source.query == "SELECT * FROM _1_d___b AS `ä-b`"


def test_branches_are_named_in_backticks():
    parsed = read("DELETE FROM d.`t$branch_b` WHERE id IN (SELECT id FROM d.`a$branch_c`)")
    assert parsed.target == TableName("d", "t$branch_b")
    assert [each.table for each in parsed.sources] == [TableName("d", "a$branch_c")]


def test_common_table_expressions_in_front_are_sources():
    parsed = read(
        "WITH new AS (SELECT * FROM src), late(id, n) AS (SELECT id, 1 FROM new, d.a) "
        + MERGE.format("SELECT * FROM late JOIN New USING (id)"),
        "src",
    )
    assert parsed.sources == (
        SqlSource("new", "SELECT * FROM src"),
        TableSource("d__a", TableName("d", "a")),
        SqlSource(
            "late",
            "WITH late(id, n) AS (SELECT id, 1 FROM new, d__a AS a) SELECT * FROM late",
        ),
        SqlSource("merge_source", "SELECT * FROM late JOIN New USING (id)"),
    )


def test_using_a_common_table_expression_or_a_named_source():
    text = "MERGE INTO d.t USING {} ON t.id = {}.id WHEN MATCHED THEN DELETE"
    assert merge(text.format("src", "src"), "src").source == "src"
    statement = merge("WITH c AS (SELECT 1 AS id) " + text.format("C", "c"))
    assert (statement.source, statement.source_alias) == ("c", "C")


def test_a_common_table_expression_hides_a_source():
    parsed = read(
        "WITH src AS (SELECT * FROM src WHERE ok) DELETE FROM d.t WHERE a IN (SELECT a FROM src)",
        "src",
    )
    assert parsed.sources == (SqlSource("src_2", "SELECT * FROM src WHERE ok"),)
    assert parsed.statement.where == "a IN (SELECT a FROM src_2 AS src)"


def test_before_update_and_delete():
    where = "id IN (SELECT id FROM `my ids`)"
    for statement in ("DELETE FROM d.t", "UPDATE d.t SET a = 1"):
        parsed = read(f"WITH `my ids` AS (SELECT 1 AS id) {statement} WHERE {where}")
        assert parsed.sources == (SqlSource("my_ids", "SELECT 1 AS id"),)
        assert parsed.statement.where == "id IN (SELECT id FROM my_ids AS `my ids`)"


def test_the_database_of_names_without_one():
    parsed = read(
        MERGE.replace("d.t", "t").format("SELECT * FROM a, x.b, src"), "src", database="d"
    )
    assert parsed.target == TableName("d", "t")
    assert [each.table for each in parsed.sources[:-1]] == [
        TableName("d", "a"),
        TableName("x", "b"),
    ]
    assert parsed.sources[-1].query == "SELECT * FROM d__a AS a, x__b AS b, src"


def test_without_database_the_remedy_is_named():
    error = refusal(MERGE.format("SELECT * FROM\n  a, src"), "src")
    assert error.code.name == "REQUEST_INVALID"
    assert "line 2, column 3: a is neither" in error.message
    assert "(src)" in error.message
    assert "database" in error.remedy


QUALIFIED = {
    "target in ON": "MERGE INTO d.t USING d.s ON d.t.id = s.id WHEN MATCHED THEN DELETE",
    "source in a value": (
        "MERGE INTO d.t USING D.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = d.S.a"
    ),
    "assigned": "UPDATE d.t SET d.t.a = 1",
    "with an alias": "DELETE FROM d.t AS x WHERE `d`.t.a = 1",
    "in a subquery": "DELETE FROM d.t WHERE a IN (SELECT d.a.x FROM d.a)",
    "star": "DELETE FROM d.t WHERE a IN (SELECT d.a.* FROM d.a)",
    "with a catalog": "DELETE FROM c.d.t WHERE c.d.t.a = 1",
}


@pytest.mark.parametrize("sql", QUALIFIED.values(), ids=QUALIFIED)
def test_a_column_with_database_and_table_asks_for_an_alias(sql):
    error = refusal(sql)
    assert error.code.name == "REQUEST_INVALID"
    assert "names the table with its database" in error.message
    assert "alias" in error.remedy


def test_a_struct_field_is_no_table():
    assert delete("DELETE FROM d.t AS d WHERE d.t.a = 1 AND x.y.z = 2").where == (
        "d.t.a = 1 AND x.y.z = 2"
    )


def test_a_name_with_a_catalog_is_the_table_without_it():
    found = read(
        "MERGE INTO c.d.t AS t USING (SELECT * FROM c.d.a JOIN d.a AS x USING (id)) AS s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert (found.target, found.target.catalog) == (TableName("d", "t"), "c")
    table, query = found.sources
    assert (table, table.table.catalog) == (TableSource("d__a", TableName("d", "a")), "c")
    assert query.query == "SELECT * FROM d__a AS a JOIN d__a AS x USING (id)"


def test_a_catalog_is_known_where_a_name_without_one_came_first():
    found = read("INSERT INTO d.t SELECT * FROM d.a JOIN c.d.a AS x USING (id)")
    assert [each.table.catalog for each in found.sources if isinstance(each, TableSource)] == ["c"]


def test_a_struct_field_of_a_column_named_like_the_catalog():
    assert delete("DELETE FROM c.d.t WHERE c.x.y = 1").where == "c.x.y = 1"
