"""ALTER TABLE as data: what a change may be, and literals that are defaults."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    DropIdentifierFields,
    MoveColumn,
    RenameColumn,
    SetProperties,
    SetWriteOrder,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.literals import literal_text, literal_value
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, RequestError

WRONG: dict[str, tuple[Any, str]] = {
    "none": (lambda: AlterTableSpec(()), "changes: there are none"),
    "column": (lambda: AddColumn("a..b", "INT"), "column: 'a..b' is not the name of a column"),
    "type": (lambda: AddColumn("a", "NUMBER"), "type: of column a: 'NUMBER' is not a type"),
    "wider": (lambda: WidenColumn("a", " "), "type: of column a is empty"),
    "place": (lambda: AddColumn("a", "INT", first=True, after="b"), "after: give either first or"),
    "no place": (lambda: MoveColumn("a"), "after: the place of a is missing"),
    "new name": (lambda: RenameColumn("a", "`b`"), "new_name: '`b`' is not an identifier"),
    "default": (lambda: AddColumn("a", "INT", default="now()"), "default: now() is not a literal"),
    "created": (lambda: ColumnSpec("a", "INT", default="1.5"), "default: 1.5 is not a literal of"),
    "properties": (lambda: SetProperties({}), "properties: there are none"),
    "names": (lambda: UnsetProperties(()), "names: there are none"),
    "transform": (lambda: AddPartitionField("cube(a)"), "field: cube(a): cube is not a transform"),
    "order": (lambda: SetWriteOrder(("a", "bucket(b)")), "order[1]: bucket(b): bucket takes a num"),
    "identifiers": (lambda: DropIdentifierFields(("",)), "columns: is empty"),
    "like": (
        lambda: CreateTableSpec((ColumnSpec("a", "INT"),), like="d.t"),
        "columns: cannot be combined with like",
    ),
    "like itself": (
        lambda: JobRequest("1", TableName("d", "T"), CatalogSpec("x", "/w"), LIKE),
        "statement.like: names the table itself",
    ),
}
LIKE = CreateTableSpec(like="d.`t`")


@pytest.mark.parametrize(("made", "problem"), WRONG.values(), ids=WRONG)
def test_a_wrong_change_is_refused_with_a_remedy(made: Any, problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        made()

    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert caught.value.message.startswith(problem)


def test_orders_say_where_nulls_are() -> None:
    texts = ("a", "b desc", "`c d` DESC NULLS FIRST", "bucket(4, e) asc nulls last")

    assert [str(each) for each in SetWriteOrder(texts).fields()] == [
        "a ASC NULLS FIRST",
        "b DESC NULLS LAST",
        "c d DESC NULLS FIRST",
        "bucket(4, e) ASC NULLS LAST",
    ]


LITERALS: dict[tuple[str, str], Any] = {
    ("-3", "TINYINT"): -3,
    ("1e2", "BIGINT"): 100,
    ("1.5", "DECIMAL(5, 2)"): Decimal("1.50"),
    ("-.5", "DOUBLE"): -0.5,
    ("TRUE", "BOOLEAN"): True,
    (r"'a\'b\n'", "STRING"): "a'b\n",
    (r"r'a\b'", "VARCHAR(3)"): "a\\b",
    ("date '2026-01-31'", "DATE"): dt.date(2026, 1, 31),
    ("TIMESTAMP '2026-01-31 01:02:03.5'", "TIMESTAMP_NTZ"): dt.datetime.fromisoformat(
        "2026-01-31T01:02:03.5"
    ),
    ("TIMESTAMP '2026-01-31T01:00:00+01:00'", "TIMESTAMP"): dt.datetime(2026, 1, 31, tzinfo=dt.UTC),
    ("X'00ff'", "BINARY"): b"\x00\xff",
    ("null", "STRUCT<a: INT>"): None,
}


@pytest.mark.parametrize(("text", "kind"), LITERALS)
def test_literals(text: str, kind: str) -> None:
    value = literal_value(text, kind)

    assert (value, type(value)) == (LITERALS[text, kind], type(LITERALS[text, kind]))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("128", "TINYINT"),
        ("1.5", "INT"),
        ("1000", "DECIMAL(5, 2)"),
        ("0.001", "DECIMAL(5, 2)"),
        ("1e39", "FLOAT"),
        ("'abcd'", "VARCHAR(3)"),
        ('"a"', "STRING"),
        ("5", "STRING"),
        ("'2026-01-31'", "DATE"),
        ("DATE '2026-02-30'", "DATE"),
        # It would be another instant in each session.
        ("TIMESTAMP '2026-01-31 00:00:00'", "TIMESTAMP"),
        ("TIMESTAMP '2026-01-31 00:00:00Z'", "TIMESTAMP_NTZ"),
        ("X'0'", "BINARY"),
        ("1 + 1", "INT"),
        ("current_date()", "DATE"),
        ("array(1)", "ARRAY<INT>"),
    ],
)
def test_what_is_no_literal_of_a_type(text: str, kind: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - some come from Python's own parsers
        literal_value(text, kind)


def test_texts_of_literals_are_what_spark_casts_to_text() -> None:
    values = (
        True,
        5,
        Decimal("1.50"),
        dt.date(2026, 1, 31),
        dt.datetime.fromisoformat("2026-01-31T01:02:03.000004"),
    )

    assert [literal_text(each) for each in values] == [
        *("true", "5", "1.50", "2026-01-31"),
        "2026-01-31 01:02:03.000004",
    ]


def test_unset_fields_of_create_table_do_not_change_its_digest() -> None:
    spec = CreateTableSpec((ColumnSpec("a", "INT"),))
    request = JobRequest("1", TableName("d", "t"), CatalogSpec("x", "/w"), spec)

    # What release 1 had, before there were defaults and LIKE.
    assert request.digest() == "41b1ec3a3466944eebf2597911b985b28012464fc6a2a50741e68823da05e6ab"
    other = replace(spec, columns=(ColumnSpec("a", "INT", default="1"),))
    assert replace(request, statement=other).digest() != request.digest()


def test_changes_survive_json() -> None:
    spec = AlterTableSpec((AddColumn("a.`b c`", "INT", default="1"), SetWriteOrder(("a",), "hash")))

    assert codec.decode(AlterTableSpec, codec.encode(spec)) == spec
