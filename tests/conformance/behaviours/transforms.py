"""Tables partitioned by transforms: rows that move, partitions that statements replace."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from spark_jobs.contract.inserts import DropPartitionsSpec, PartitionStatement, TruncateTableSpec
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    delete,
    delete_from,
    fails,
    insert,
    insert_all,
    matched,
    not_matched,
    update,
    update_all,
    update_set,
)
from tests.conformance.behaviours.overwrites import does, new, overwrite
from tests.conformance.tables import EVENTS, ORDERS, event

_BUCKET = BucketTransform(4).transform(LongType())
_ORDER = "s(id, k, v, n, req, p)"
_NEW_IDS = (1, 2)
_NEW = f"VALUES (1, 11, 'x', 3, 'r', 'a'), (2, 12, NULL, 4, 'r', 'z') AS {_ORDER}"
_NEW_ROWS = (new(1, 11, "x", 3, "a"), new(2, 12, None, 4, "z"))


def of_buckets(*buckets: int) -> frozenset[int]:
    """Ids of the rows of ORDERS in these of four buckets."""
    return frozenset(row["id"] for row in ORDERS.rows if _BUCKET(row["id"]) in buckets)


BY_BUCKET = [
    update_set(
        "buckets: rows move to the bucket of their new id",
        {"id": "id + 1000"},
        "id IN (101, 122, 143)",
        updated={id_: {"id": id_ + 1000} for id_ in (101, 122, 143)},
    ),
    Behaviour(
        "buckets: a MERGE that deletes, updates and inserts",
        f"VALUES (101, 1, 'd', 1, 'r', 'a'), (122, 2, 'u', 2, 'r', 'b'), (7, 3, 'i', 3, 'r', NULL)"
        f" AS {_ORDER}",
        (matched(delete(), "s.v = 'd'"), matched(update_all()), not_matched(insert_all())),
        deleted=frozenset({101}),
        updated={122: {"k": 2, "v": "u", "n": 2, "p": "b"}},
        inserted=(new(7, 3, "i", 3, None),),
        source_rows=3,
        matched=2,
    ),
    does(
        "buckets: dynamic overwrite replaces those of the new rows",
        overwrite("dynamic"),
        _NEW,
        deleted=of_buckets(*map(_BUCKET, _NEW_IDS)),
        inserted=_NEW_ROWS,
        source_rows=2,
    ),
    does(
        "buckets: static overwrite",
        overwrite("static", {"id_bucket": str(_BUCKET(1))}),
        f"VALUES (1, 11, 'x', 3, 'r', 'a') AS {_ORDER}",
        deleted=of_buckets(_BUCKET(1)),
        inserted=_NEW_ROWS[:1],
    ),
    does(
        "buckets: static overwrite with a row of another one",
        overwrite("static", {"id_bucket": str((_BUCKET(1) + 1) % 4)}),
        f"VALUES (1, 11, 'x', 3, 'r', 'a') AS {_ORDER}",
        fails=fails(ErrorCode.ROW_OUTSIDE_PARTITION, "id_bucket"),
    ),
    does(
        "buckets: several are dropped",
        DropPartitionsSpec(({"id_bucket": "0"}, {"ID_BUCKET": "3"})),
        deleted=of_buckets(0, 3),
    ),
]


def of_25(*starts: int) -> frozenset[int]:
    """Ids of the rows of ORDERS in ``truncate(25, id)`` of these values."""
    return frozenset(row["id"] for row in ORDERS.rows if row["id"] // 25 * 25 in starts)


_AT_100 = (new(101, 11, "x", 3, "a"), new(124, 12, None, 4, "z"))
_TWO_AT_100 = f"VALUES (101, 11, 'x', 3, 'r', 'a'), (124, 12, NULL, 4, 'r', 'z') AS {_ORDER}"

# Of files of a spec without partitions, too.
BY_TRUNCATE = [
    update_set(
        "truncate: rows move",
        {"id": "id + 1000"},
        "id IN (101, 122, 143)",
        updated={id_: {"id": id_ + 1000} for id_ in (101, 122, 143)},
    ),
    does(
        "truncate: dynamic overwrite replaces the rows of those of the new rows",
        overwrite("dynamic"),
        _TWO_AT_100,
        deleted=of_25(100),
        inserted=_AT_100,
        source_rows=2,
    ),
    does(
        "truncate: static overwrite, as expected",
        overwrite("static", {"id_truncate": "100"}, expected_partitions=({"id_truncate": "100"},)),
        _TWO_AT_100,
        deleted=of_25(100),
        inserted=_AT_100,
    ),
    does(
        "truncate: a partition that is not expected",
        overwrite("dynamic", expected_partitions=({"id_truncate": "200"},)),
        _TWO_AT_100,
        fails=fails(ErrorCode.PARTITION_NOT_EXPECTED, "id_truncate = 100"),
    ),
    does(
        "truncate: static overwrite with a row of another one",
        overwrite("static", {"id_truncate": "125"}),
        _TWO_AT_100,
        fails=fails(ErrorCode.ROW_OUTSIDE_PARTITION, "id_truncate"),
    ),
    does(
        "truncate: several are dropped",
        DropPartitionsSpec(({"id_truncate": "125"}, {"ID_TRUNCATE": "300"})),
        deleted=of_25(125, 300),
    ),
    does(
        "truncate: one is cleared",
        TruncateTableSpec({"id_truncate": "400"}),
        deleted=of_25(400),
    ),
    does(
        "truncate: one that no row is in",
        DropPartitionsSpec(({"id_truncate": "125"}, {"id_truncate": "250"})),
        fails=fails(ErrorCode.PARTITION_NOT_FOUND, "id_truncate = 250"),
    ),
]


def days(name: str, statement: PartitionStatement, source: str = "", **outcome: Any) -> Behaviour:
    """A behaviour of a statement about the days of EVENTS."""
    rows = source or "VALUES (0) AS s(id)"
    return does(name, statement, rows, table=EVENTS, **outcome)


def of_days(*names: str | None) -> frozenset[int]:
    """Ids of the rows of EVENTS at these days."""
    return frozenset(
        row["id"] for row in EVENTS.rows if (row["at"] and str(row["at"].date())) in names
    )


def _at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"{text}+00:00")


_JANUARY = "(SELECT 1L AS id, TIMESTAMP'2026-01-31 05:00:00' AS at, 'n' AS v, 'x' AS p) AS s"
_JANUARY_ROW = event(1, "2026-01-31T05:00:00", "n", "x")

BY_DAY = [
    update_set(
        "days: rows move to the next one, also over the year 1970",
        {"at": "at + INTERVAL 1 DAY"},
        "id IN (10, 30, 31)",
        table=EVENTS,
        updated={
            row["id"]: {"at": row["at"] + dt.timedelta(days=1)}
            for row in EVENTS.rows
            if row["id"] in (10, 30, 31)
        },
    ),
    Behaviour(
        "days: a MERGE into and out of the partition of NULL",
        "VALUES (10L, CAST(NULL AS TIMESTAMP)), (40L, TIMESTAMP'1969-12-31 23:00:00'), (2L, NULL),"
        " (3L, TIMESTAMP'2026-01-31 00:00:00') AS s(id, at)",
        (matched(update(at="s.at")), not_matched(insert(id="s.id", at="s.at"))),
        table=EVENTS,
        updated={10: {"at": None}, 40: {"at": _at("1969-12-31T23:00:00")}},
        inserted=(event(2, None, None, None), event(3, "2026-01-31T00:00:00", None, None)),
        source_rows=4,
        matched=2,
    ),
    delete_from(
        "days: rows before a time within a day",
        "at < TIMESTAMP'2026-01-31 10:30:00'",
        table=EVENTS,
        deleted=frozenset({10, 30, 31}),
    ),
    delete_from(
        "days: whole ones",
        "at >= TIMESTAMP'2026-02-01 00:00:00' OR at IS NULL",
        table=EVENTS,
        deleted=of_days("2026-02-01", None),
    ),
    days(
        "days: dynamic overwrite replaces those of the new rows",
        overwrite("dynamic"),
        f"(SELECT * FROM {_JANUARY} UNION ALL SELECT 2, NULL, 'n', 'x') AS s",
        deleted=of_days("2026-01-31", None),
        inserted=(_JANUARY_ROW, event(2, None, "n", "x")),
        source_rows=2,
    ),
    days(
        "days: static overwrite",
        overwrite("static", {"at_day": "DATE '2026-01-31'"}),
        _JANUARY,
        deleted=of_days("2026-01-31"),
        inserted=(_JANUARY_ROW,),
    ),
    days(
        "days: static overwrite with a row of another one",
        overwrite("static", {"at_day": "DATE '2026-02-01'"}),
        _JANUARY,
        fails=fails(ErrorCode.ROW_OUTSIDE_PARTITION, "2026-01-31"),
    ),
    days(
        "days: the one before 1970 is cleared",
        TruncateTableSpec({"at_day": "DATE '1969-12-31'"}),
        deleted=of_days("1969-12-31"),
    ),
    days(
        "days: that of NULL is dropped, and one that is not there",
        DropPartitionsSpec(({"at_day": "NULL"}, {"at_day": "DATE '1999-01-01'"}), if_exists=True),
        deleted=of_days(None),
    ),
]
