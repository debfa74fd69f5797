"""Values: kept bit for bit, stored by ANSI rules, refused where they do not fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    Failure,
    delete,
    fails,
    insert,
    insert_all,
    matched,
    not_matched,
    update,
    update_all,
)
from tests.conformance.behaviours.clauses import new
from tests.conformance.tables import VALUES, value_row

_NAMES = [column.name for column in VALUES.columns]
_ALL_TYPES = (
    "(SELECT {id} AS id, true AS flag, 1Y AS tiny, 2S AS small, 3 AS whole, 4L AS big,"
    " CAST('NaN' AS FLOAT) AS single, -0.0D AS double, 5.25BD AS price,"
    " CAST('0.0000000001' AS DECIMAL(38, 10)) AS wide, 'é' AS text, X'00FF' AS bytes,"
    " DATE'0001-01-01' AS day, TIMESTAMP'2024-03-31 01:30:00.000001+02:00' AS at,"
    " TIMESTAMP_NTZ'2024-03-31 02:30:00.5' AS local, 'abcde' AS code, 'x' AS p) AS s"
)
_ALL_ROW = {
    "id": 1,
    "flag": True,
    "tiny": 1,
    "small": 2,
    "whole": 3,
    "big": 4,
    "single": float("nan"),
    "double": -0.0,
    "price": Decimal("5.25"),
    "wide": Decimal("0.0000000001"),
    "text": "é",
    "bytes": b"\x00\xff",
    "day": dt.date(1, 1, 1),
    "at": dt.datetime(2024, 3, 30, 23, 30, 0, 1, dt.UTC),
    "local": dt.datetime(2024, 3, 31, 2, 30, 0, 500_000),  # noqa: DTZ001
    "code": "abcde",
    "p": "x",
}
_MOVED = range(10, 20)


def unstorable(*says: str) -> Failure:
    return fails(ErrorCode.VALUE_NOT_STORABLE, *says)


def mismatch(*says: str) -> Failure:
    return fails(ErrorCode.TYPE_MISMATCH, *says)


def updates(name: str, value: str, failure: Failure, **needs: bool) -> Behaviour:
    """A value that cannot be stored in a column of VALUES."""
    column, expression = value.split(" = ", 1)
    return Behaviour(
        name,
        "VALUES (10) AS s(id)",
        (matched(update({column: expression})),),
        table=VALUES,
        fails=failure,
        **needs,
    )


BEHAVIOURS = [
    Behaviour(
        "values that are carried over stay bit for bit",
        "VALUES (10), (25), (39) AS s(id)",
        (matched(update(text="'new'")),),
        table=VALUES,
        updated={id_: {"text": "new"} for id_ in (10, 25, 39)},
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "values of rows that are written anew stay bit for bit",
        "(SELECT id FROM range(10, 20)) AS s",
        (matched(update(p="'moved'")),),
        table=VALUES,
        updated={id_: {"p": "moved"} for id_ in _MOVED},
        source_rows=10,
        matched=10,
    ),
    Behaviour(
        "values that are assigned from the same column stay bit for bit",
        "(SELECT id FROM range(10, 20)) AS s",
        (matched(update({name: f"t.{name}" for name in _NAMES if name not in ("id", "p")})),),
        table=VALUES,
        updated={id_: {} for id_ in _MOVED},
        source_rows=10,
        matched=10,
    ),
    Behaviour(
        "values of every type are inserted and updated",
        f"(SELECT * FROM {_ALL_TYPES.format(id=1)} UNION ALL"
        f" SELECT * FROM {_ALL_TYPES.format(id='12L')}) AS s",
        (matched(update_all()), not_matched(insert_all())),
        table=VALUES,
        updated={12: {**_ALL_ROW, "id": 12}},
        inserted=(_ALL_ROW,),
        source_rows=2,
        matched=1,
        smoke=True,
    ),
    Behaviour(
        "NULL of every type is inserted and updated",
        "VALUES (1), (12) AS s(id)",
        (
            matched(update({name: "NULL" for name in _NAMES if name not in ("id", "p")})),
            not_matched(insert(id="s.id")),
        ),
        table=VALUES,
        updated={12: {**dict.fromkeys(_NAMES), "id": 12, "p": value_row(12, "x")["p"]}},
        inserted=({**dict.fromkeys(_NAMES), "id": 1},),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "values are cast to the column's type",
        "VALUES (10) AS s(id)",
        (
            matched(
                update(
                    flag="'yes'",
                    tiny="'12'",
                    small="-1.9D",
                    whole="2.99BD",
                    big="CAST(7 AS TINYINT)",
                    single="16777217",
                    double="1.1BD",
                    price="'3.5'",
                    wide="9",
                    text="DATE'2024-01-31'",
                    day="TIMESTAMP'2024-01-31 23:59:59'",
                    at="DATE'2024-01-31'",
                    local="'2024-01-31 01:02:03.4'",
                    code="12345",
                )
            ),
        ),
        table=VALUES,
        updated={
            10: {
                "flag": True,
                "tiny": 12,
                "small": -1,
                "whole": 2,
                "big": 7,
                "single": 16777216.0,
                "double": 1.1,
                "price": Decimal("3.50"),
                "wide": Decimal("9.0000000000"),
                "text": "2024-01-31",
                "day": dt.date(2024, 1, 31),
                "at": dt.datetime(2024, 1, 31, tzinfo=dt.UTC),
                "local": dt.datetime(2024, 1, 31, 1, 2, 3, 400_000),  # noqa: DTZ001
                "code": "12345",
            }
        },
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "trailing blanks beyond VARCHAR's length are cut, others are kept",
        "VALUES (10, 'abcde   '), (11, 'ab  ') AS s(id, code)",
        (matched(update(code="s.code")),),
        table=VALUES,
        updated={10: {"code": "abcde"}, 11: {"code": "ab  "}},
        source_rows=2,
        matched=2,
        needs_narrow_types=True,
    ),
    updates("a text that is no number", "whole = 'x1'", unstorable("column whole int", "x1")),
    Behaviour(
        "a new row with a text that is no number",
        "(SELECT 77L AS id, 'x1' AS whole) AS s",
        (not_matched(insert(id="s.id", whole="s.whole")),),
        table=VALUES,
        fails=unstorable(
            "clause 1 (WHEN NOT MATCHED): column whole int cannot hold the value 'x1' of the row "
            "with id=77"
        ),
        smoke=True,
    ),
    updates("a number that is too large", "whole = 3000000000", unstorable("whole", "3000000000")),
    updates(
        "a fraction beyond INT",
        "tiny = 128.5D",
        unstorable("tiny", "128.5"),
        needs_narrow_types=True,
    ),
    updates("NaN into an integer", "big = double('NaN')", unstorable("big", "NaN")),
    updates("a decimal beyond its precision", "price = 1e8BD", unstorable("price")),
    updates("a text that is no date", "day = '2024-02-30'", unstorable("day", "2024-02-30")),
    updates(
        "a text beyond VARCHAR's length",
        "code = 'abcdef'",
        unstorable("code", "abcdef"),
        needs_narrow_types=True,
    ),
    updates("a value with markers of errors", "tiny = '>><<job-error {}'", unstorable("tiny")),
    updates("a boolean into a number", "whole = true", mismatch("whole", "boolean", "int")),
    updates("a number into a boolean", "flag = 1", mismatch("flag", "int", "boolean")),
    updates("a number into a date", "day = 1", mismatch("day", "int", "date")),
    updates("a text into binary", "bytes = 'x'", mismatch("bytes", "string", "binary")),
    updates("an array into a text", "text = array('x')", mismatch("text", "array", "string")),
    Behaviour(
        "NULL in a NOT NULL column is an error that names column and clause",
        "VALUES (101, NULL), (122, 'x') AS s(id, req)",
        (matched(delete(), "s.req = 'd'"), matched(update(req="s.req"))),
        fails=fails(ErrorCode.NOT_NULL_VIOLATION, "column req", "clause 2"),
        smoke=True,
    ),
    Behaviour(
        "INSERT without a NOT NULL column is an error",
        "VALUES (1) AS s(id)",
        (not_matched(insert(id="s.id")),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "clause 1", "column req", "NOT NULL"),
    ),
    Behaviour(
        "NULL for a NOT NULL column in rows of other clauses is no error",
        "VALUES (101, NULL), (122, 'x'), (143, NULL) AS s(id, req)",
        (matched(update(req="s.req"), "s.req IS NOT NULL"), matched(update(v="s.req"))),
        updated={101: {"v": None}, 122: {"req": "x"}, 143: {"v": None}},
        source_rows=3,
        matched=3,
    ),
    Behaviour(
        "an expression that fails is an error",
        "VALUES (101, 0), (122, 1) AS s(id, n)",
        (matched(update(n="t.n / s.n")),),
        fails=fails(ErrorCode.EXPRESSION_FAILED, "DIVIDE_BY_ZERO"),
        smoke=True,
    ),
    Behaviour(
        "an expression is evaluated only on the rows of its clause",
        "VALUES (101, 0), (122, 1), (1, 0), (2, 1) AS s(id, n)",
        (
            matched(update(n="7"), "s.n = 0"),
            matched(update(n="6 / s.n"), "1 / s.n = 1"),
            not_matched(insert(id="s.id", req="'zero'"), "s.n = 0"),
            not_matched(insert(id="s.id", k="8 / s.n", req="'r'")),
        ),
        updated={101: {"n": 7}, 122: {"n": 6}},
        inserted=(new(1, req="zero"), new(2, k=8)),
        source_rows=4,
        matched=2,
    ),
    Behaviour(
        "a value that no row of its clause has does not fail",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update(n="s.v"), "t.n > 100"), matched(update(v="s.v"))),
        updated={101: {"v": "x"}},
        source_rows=1,
        matched=1,
    ),
]
