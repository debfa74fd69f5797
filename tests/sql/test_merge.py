"""MERGE: each piece of the grammar ends in the contract's field."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import SqlSource, TableName, TableSource
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
)
from tests.sql.reading import merge, read

HEAD = "MERGE INTO shop.orders AS t USING updates AS s ON t.id = s.id "


def clause(text: str) -> MergeCase:
    (case,) = merge(HEAD + text, "updates").cases
    return case


def test_whole_statement():
    parsed = read(
        """
        -- nightly
        MERGE INTO shop.orders t
        USING shop.updates AS s
           ON t.id = s.id /* the key */ AND t.day = s.day
        WHEN MATCHED AND s.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = s.amount, address.city = upper(s.city)
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, amount) VALUES (s.id, s.amount + 1)
        WHEN NOT MATCHED BY SOURCE AND t.day = DATE '2024-01-01' THEN UPDATE SET state = 'old';
        """
    )

    assert parsed.target == TableName("shop", "orders")
    assert parsed.sources == (TableSource("merge_source", TableName("shop", "updates")),)
    assert parsed.statement == MergeSpec(
        source="merge_source",
        on="t.id = s.id /* the key */ AND t.day = s.day",
        cases=(
            MergeCase("matched", DeleteAction(), "s.gone"),
            MergeCase(
                "matched",
                UpdateAction(
                    (
                        Assignment("amount", "s.amount"),
                        Assignment("address.city", "upper(s.city)"),
                    )
                ),
            ),
            MergeCase("not_matched", InsertAction(("s.id", "s.amount + 1"), ("id", "amount"))),
            MergeCase(
                "not_matched_by_source",
                UpdateAction((Assignment("state", "'old'"),)),
                "t.day = DATE '2024-01-01'",
            ),
        ),
        target_alias="t",
        source_alias="s",
    )


CLAUSES = {
    "WHEN MATCHED THEN UPDATE SET *": MergeCase("matched", UpdateAllAction()),
    "when matched then delete": MergeCase("matched", DeleteAction()),
    "WHEN MATCHED AND a AND b THEN DELETE": MergeCase("matched", DeleteAction(), "a AND b"),
    "WHEN NOT MATCHED THEN INSERT *": MergeCase("not_matched", InsertAllAction()),
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, DEFAULT)": MergeCase(
        "not_matched", InsertAction(("s.id", "DEFAULT"))
    ),
    "WHEN NOT MATCHED AND s.x>0 THEN INSERT(t.id)VALUES(f(s.x,1))": MergeCase(
        "not_matched", InsertAction(("f(s.x,1)",), ("t.id",)), "s.x>0"
    ),
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": MergeCase("not_matched_by_source", DeleteAction()),
    "WHEN MATCHED THEN UPDATE SET `a b` . /* x */ c == 1, t.x=DEFAULT": MergeCase(
        "matched", UpdateAction((Assignment("`a b`.c", "1"), Assignment("t.x", "DEFAULT")))
    ),
}


@pytest.mark.parametrize(("text", "case"), CLAUSES.items(), ids=CLAUSES)
def test_clause(text, case):
    assert clause(text) == case


def test_keywords_need_no_space():
    statement = merge(
        "MERGE INTO d.t t USING d.s s ON(t.id=s.id)WHEN MATCHED THEN UPDATE SET *WHEN NOT MATCHED "
        "THEN INSERT(a)VALUES(s.a)WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert statement.on == "(t.id=s.id)"
    assert [case.when for case in statement.cases] == [
        "matched",
        "not_matched",
        "not_matched_by_source",
    ]


def test_schema_evolution():
    text = "MERGE{} INTO d.t USING d.s ON t.a = s.a WHEN MATCHED THEN UPDATE SET *"
    assert merge(text.format(" WITH SCHEMA EVOLUTION")).schema_evolution is True
    assert merge(text.format("")).schema_evolution is False


ALIASES = {
    "d.t USING d.s": ("t", "s"),
    "d.t AS a USING d.s b": ("a", "b"),
    "d.t a USING d.s AS b": ("a", "b"),
    "d.`my t` USING updates": ("my t", "updates"),
    "d.t AS `a``b` USING updates u": ("a`b", "u"),
    "d.t USING (SELECT 1 AS id) AS `x y`": ("t", "x y"),
    "d.t source USING d.s target": ("source", "target"),
}


@pytest.mark.parametrize(("text", "aliases"), ALIASES.items(), ids=ALIASES)
def test_aliases(text, aliases):
    statement = merge(f"MERGE INTO {text} ON true WHEN MATCHED THEN DELETE", "updates")
    assert (statement.target_alias, statement.source_alias) == aliases


def test_a_query_without_alias_gets_one_that_the_text_does_not_use():
    statement = merge(
        "MERGE INTO d.t USING (SELECT 1 AS merge_source) ON id = merge_source "
        "WHEN MATCHED THEN DELETE"
    )
    assert statement.source_alias not in {"t", "merge_source", "id"}


@pytest.mark.parametrize(
    ("using", "source"),
    [
        ("(SELECT 1, 2)", SqlSource("merge_source", "SELECT 1, 2")),
        ("d.s", TableSource("merge_source", TableName("d", "s"))),
    ],
)
def test_names_of_columns_behind_the_alias_of_the_source(using, source):
    text = f"MERGE INTO d.t USING {using} AS s (a, `b c`) ON t.a = s.a WHEN MATCHED THEN DELETE"
    found = read(text)
    query = "SELECT * FROM `merge_source` AS `merge_source` (a, `b c`)"
    assert found.sources == (source, SqlSource("merge_source_2", query))
    assert (found.statement.source, found.statement.source_alias) == ("merge_source_2", "s")


def test_the_target_can_be_its_own_source():
    parsed = read("MERGE INTO d.t a USING d.t b ON a.id = b.id WHEN MATCHED THEN DELETE")
    assert parsed.target == TableName("d", "t")
    assert parsed.sources == (TableSource("merge_source", TableName("d", "t")),)
