"""Random texts: split exactly where they were put together, and never a crash."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_merge.sql.parser import parse_statement, parse_where
from spark_jobs.contract.statements import DeleteSpec, InsertAction, MergeSpec, UpdateAction
from spark_jobs.errors import JobError
from tests.sql.strategies import Pieces, mutations, soup, statements

KNOWN = {"SYNTAX_ERROR", "REQUEST_INVALID", "NOT_SUPPORTED", "EXPRESSION_NOT_ALLOWED"}


def pieces_of(statement) -> tuple[str, ...]:
    """All expressions of a statement in the order of its text."""
    found: list[str | None] = []
    if isinstance(statement, DeleteSpec):
        found.append(statement.where)
    elif not isinstance(statement, MergeSpec):
        found += [*(each.value for each in statement.assignments), statement.where]
    else:
        found.append(statement.on)
        for case in statement.cases:
            found.append(case.condition)
            if isinstance(case.action, UpdateAction):
                found += [each.value for each in case.action.assignments]
            elif isinstance(case.action, InsertAction):
                found += case.action.values
    return tuple(each for each in found if each is not None)


@given(statements)
@settings(max_examples=150)
def test_the_pieces_come_out_as_they_went_in(pieces: Pieces):
    assert pieces_of(parse_statement(pieces.text).statement) == pieces.expressions


def check_no_crash(text: str) -> None:
    for read in (parse_statement, parse_where):
        error = error_of(read, text)
        if error is not None:
            assert error.code.name in KNOWN
            assert error.message.startswith("line ")


def error_of(read, text: str) -> JobError | None:
    try:
        read(text, ("src",), "d")
    except JobError as error:
        return error
    return None


@given(mutations())
@settings(max_examples=150)
def test_mutations_never_crash(text: str):
    check_no_crash(text)


@given(soup)
@settings(max_examples=150)
def test_token_soup_never_crashes(text: str):
    check_no_crash(text)
    check_no_crash(f"MERGE INTO t USING ({text}) s ON {text} WHEN MATCHED THEN UPDATE SET {text}")
    check_no_crash(f"DELETE FROM t WHERE a IN (SELECT {text})")


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_any_characters_never_crash(text: str):
    check_no_crash(text)
    check_no_crash(f"UPDATE t SET a = {text} WHERE {text}")


@pytest.mark.slow
def test_long_texts_take_no_long_time():
    values = ", ".join(f"c{index} = f('WHEN', {index})" for index in range(2000))
    statement = parse_statement(f"UPDATE d.t SET {values} WHERE {'a AND ' * 2000} b").statement
    assert len(pieces_of(statement)) == 2001
    for text in ("/*" * 20000, "'\\" * 20000, "CASE WHEN " * 20000, "a." * 20000, "(" * 20000):
        check_no_crash(f"DELETE FROM d.t WHERE {text}")
