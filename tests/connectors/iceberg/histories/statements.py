"""Statements of histories: their text, for this project and for Spark with Iceberg, beside what
they mean, in plain Python.

``{t}`` is the table, ``{s}`` the source, ``{k}`` a small number; ``{v}`` is what the column of the
field ``v`` is called by now.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tests.connectors.iceberg.histories.model import Row

Meaning = Callable[[list[Row], list[Row], int], list[Row]]
# From then on, ids are those of rows that were inserted without a look at others.
_INSERTED: Final = 1000


@dataclass(frozen=True)
class Statement:
    """``meaning`` makes of rows, source and number the rows afterwards; ``needs``: a field."""

    text: str
    meaning: Meaning
    needs: str = "id"


def _merged(
    on: Callable[[Row, Row], bool],
    matched: Callable[[Row, Row, int], Row | None],
    *,
    missing: Callable[[Row, int], Row | None] = lambda row, _: row,
    inserts: bool = False,
) -> Meaning:
    def meaning(rows: list[Row], source: list[Row], k: int) -> list[Row]:
        found: list[Row | None] = []
        for row in rows:
            pairs = [each for each in source if on(row, each)]
            found.append(matched(row, pairs[0], k) if pairs else missing(row, k))
        new = [each for each in source if not any(on(row, each) for row in rows)]
        return [*(row for row in found if row is not None), *(new if inserts else [])]

    return meaning


def _updated(where: Callable[[Row, int], bool], change: Callable[[Row], Row]) -> Meaning:
    return lambda rows, _, k: [change(row) if where(row, k) else row for row in rows]


def _deleted(where: Callable[[Row, int], bool]) -> Meaning:
    return lambda rows, _, k: [row for row in rows if not where(row, k)]


def _inserted(rows: list[Row], source: list[Row], k: int) -> list[Row]:
    del k
    return [*rows, *({**each, "id": each["id"] + _INSERTED} for each in source)]


def _with_x(row: Row, x: int | None) -> Row:
    return {**row, "n": {**(row.get("n") or {}), "x": x}}


def _same_id(row: Row, other: Row) -> bool:
    return bool(row["id"] == other["id"])


def _same_place(row: Row, other: Row) -> bool:
    return _same_id(row, other) and row["p"] is not None and row["p"] == other["p"]


def _is_less(value: Any, limit: Any) -> bool:
    return value is not None and value < limit


def _values_of(row: Row, other: Row, k: int) -> Row | None:
    if other["v"] is not None and other["v"] % 3 == k % 3:
        return None
    return {**row, "v": other["v"], "at": other["at"]}


_COLUMNS = "(id, {p}, {v}, {at}, {d}, {m}, n)"
_VALUES = "(s.id, s.p, s.v, s.at, s.d, s.m, NULL)"
FIRST: Final = Statement(
    f"INSERT INTO {{t}} {_COLUMNS} SELECT id, p, v, at, d, m, NULL FROM {{s}}",
    lambda _, source, __: source,
)
MERGES: Final = (
    Statement(
        "MERGE INTO {t} t USING {s} ON t.id = s.id "
        "WHEN MATCHED AND s.v % 3 = {k} % 3 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET {v} = s.v, {at} = s.at "
        f"WHEN NOT MATCHED THEN INSERT {_COLUMNS} VALUES {_VALUES}",
        _merged(_same_id, _values_of, inserts=True),
    ),
    Statement(
        "MERGE INTO {t} t USING {s} ON t.id = s.id AND t.{p} = s.p "
        "WHEN MATCHED THEN UPDATE SET {m} = s.m "
        "WHEN NOT MATCHED BY SOURCE AND t.{v} < {k} THEN DELETE",
        _merged(
            _same_place,
            lambda row, other, _: {**row, "m": other["m"]},
            missing=lambda row, k: None if _is_less(row["v"], k) else row,
        ),
    ),
    Statement(
        "MERGE INTO {t} t USING {s} ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET {p} = s.p, {d} = s.d, n.x = s.v",
        _merged(
            _same_id,
            lambda row, other, _: _with_x({**row, "p": other["p"], "d": other["d"]}, other["v"]),
        ),
    ),
)
OTHERS: Final = (
    Statement(
        "UPDATE {t} SET {v} = {v} * 2 % 97, n.x = {v} WHERE id > {k} AND {p} = 'a'",
        _updated(
            lambda row, k: row["id"] > k and row["p"] == "a",
            lambda row: _with_x({**row, "v": row["v"] and row["v"] * 2 % 97}, row["v"]),
        ),
    ),
    Statement(
        "UPDATE {t} SET {p} = 'z' WHERE id % 4 = {k} % 4",
        _updated(lambda row, k: row["id"] % 4 == k % 4, lambda row: {**row, "p": "z"}),
    ),
    Statement(
        "UPDATE {t} SET {at} = NULL WHERE {v} IS NULL",
        _updated(lambda row, _: row["v"] is None, lambda row: {**row, "at": None}),
    ),
    Statement(
        "UPDATE {t} SET {extra} = {p} WHERE id % 2 = {k} % 2",
        _updated(lambda row, k: row["id"] % 2 == k % 2, lambda row: {**row, "extra": row["p"]}),
        needs="extra",
    ),
    Statement(
        "DELETE FROM {t} WHERE id BETWEEN {k} AND {k} + 4",
        _deleted(lambda row, k: k <= row["id"] <= k + 4),
    ),
    Statement(
        "DELETE FROM {t} WHERE {at} < TIMESTAMP'2000-01-01' OR {d} IS NULL",
        _deleted(lambda row, _: _is_less(row["at"], "2000") or row["d"] is None),
    ),
    Statement("DELETE FROM {t} WHERE {p} = 'b'", _deleted(lambda row, _: row["p"] == "b")),
    Statement(
        f"INSERT INTO {{t}} {_COLUMNS} SELECT id + {_INSERTED}, p, v, at, d, m, NULL FROM {{s}}",
        _inserted,
    ),
)


def random_source(chance: random.Random) -> list[Row]:
    """A few rows with different ids."""
    return [_random_row(chance, id_) for id_ in sorted(chance.sample(range(30), 12))]


def _random_row(chance: random.Random, id_: int) -> Row:
    year, month = chance.choice((1905, 1969, 1970, 2024)), chance.randrange(1, 9)
    return {
        "id": id_,
        "p": chance.choice((None, "a", "b", "ü/ä b")),
        "v": chance.choice((None, *range(12))),
        "at": f"{year}-0{month}-01 00:00:00.000001",
        "d": chance.choice((None, "1969-12-31", "2024-02-29")),
        "m": chance.randrange(-99999, 99999) + Decimal("0.25"),
    }


def query_of(source: Iterable[Row]) -> str:
    """The rows as a query, which both engines understand."""
    rows = ", ".join(_literals(row) for row in source)
    return (
        "SELECT CAST(id AS BIGINT) AS id, CAST(p AS STRING) AS p, CAST(v AS INT) AS v, "
        "CAST(at AS TIMESTAMP) AS at, CAST(d AS DATE) AS d, CAST(m AS DECIMAL(12,2)) AS m "
        f"FROM VALUES {rows} AS x(id, p, v, at, d, m)"
    )


def _literals(row: Row) -> str:
    values = (repr(each) if isinstance(each, str) else str(each) for each in row.values())
    return f"({', '.join('NULL' if each == 'None' else each for each in values)})"
