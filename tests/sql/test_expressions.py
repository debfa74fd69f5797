"""Expressions are slices of the text: what looks like a keyword inside them splits nothing."""

from __future__ import annotations

import pytest

from tests.sql.reading import merge, merge_on, update

WHOLE = (
    "t.a = s.a",
    "CASE WHEN t.a THEN s.b ELSE c END",
    "CASE CASE WHEN a THEN b END WHEN 1 THEN true END",
    "CASE x WHEN 1 THEN true WHEN 2 THEN false END AND t.a BETWEEN 1 AND 2",
    "t.a = 'x WHEN MATCHED THEN DELETE'",
    't.a = "x WHEN MATCHED THEN DELETE"',
    "t.a = 'it''s WHEN' AND s.b = 'it\\'s WHEN'",
    "t.a = r'\\' OR t.a = R\"\\\" OR t.`WHEN MATCHED` = 1",
    "t.`a``WHEN` = s.`b\\`",
    "t.a /* WHEN MATCHED /* nested ' */ \" THEN */ = s.a",
    "t.a -- WHEN MATCHED THEN DELETE '\n = s.a",
    "t.a -- goes on \\\n WHEN MATCHED THEN DELETE\n = s.a",
    "(WHEN + THEN) > 0",
    "t.when = s.then AND t.end = s.case",
    "f(t.a, CASE WHEN true THEN 1 END) > 1",
    "exists(t.a, x -> x = s.a)",
    "t.a[0] = s.a['WHEN']",
    "end = start",
    "CASE WHEN end THEN end ELSE end END",
    "CASE WHEN CASE WHEN x THEN a * end END THEN b END",
    "case = 1 AND case IS NULL",
    "t.a <=> s.a AND NOT (t.b == s.b) AND t.c != s.c AND t.d <> s.d",
    "t.a = 1L AND t.b = 2.5BD AND t.c = .5 AND t.d = 1e-3 AND t.e = 1.",
    "t.day = DATE '2024-01-01' - INTERVAL '1' DAY",
    "t.a = s.a::MAP<STRING, ARRAY<INT>>",
    "t.`größe` = s.`größe` AND t.`é 😀` = '😀'",
    "t.a = :name",
    "CASE -1 WHEN -1 THEN true END",
    "CASE NOT a WHEN true THEN b END",
    "x'1F' = s.a",
)


@pytest.mark.parametrize("text", WHOLE)
def test_as_condition(text):
    assert merge_on(text) == text


@pytest.mark.parametrize("text", WHOLE)
def test_everywhere(text):
    statement = merge(
        f"""MERGE INTO d.t AS t USING d.s AS s ON {text}
        WHEN MATCHED AND {text} THEN UPDATE SET a = {text}, b = {text}
        WHEN NOT MATCHED AND {text} THEN INSERT (a, b) VALUES ({text}, {text})"""
    )
    matched, not_matched = statement.cases
    assert statement.on == text
    assert matched.condition == text
    assert [(each.column, each.value) for each in matched.action.assignments] == [
        ("a", text),
        ("b", text),
    ]
    assert not_matched.condition == text
    assert not_matched.action.values == (text, text)


@pytest.mark.parametrize("text", WHOLE)
def test_in_update(text):
    statement = update(f"UPDATE d.t SET a = {text}, b = {text} WHERE {text}")
    assert [each.value for each in statement.assignments] == [text, text]
    assert statement.where == text


def test_comments_between_the_pieces_belong_to_none():
    statement = merge(
        "/* a */ MERGE /* b */ INTO d.t -- c\n USING d.s /* ON */ ON /* d */ true /* e */ "
        "WHEN /* f */ MATCHED AND /* g */ true /* h */ THEN DELETE -- i"
    )
    assert statement.on == "true"
    assert statement.cases[0].condition == "true"
