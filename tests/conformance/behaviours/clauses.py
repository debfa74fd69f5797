"""Each kind of clause alone and all of them together, conditions, and order."""

from __future__ import annotations

from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    insert_all,
    insert_positional,
    matched,
    not_matched,
    update,
    update_all,
)
from tests.conformance.tables import EMPTY, ORDERS, order

_IDS = {row["id"] for row in ORDERS.rows}
_FULL = "(SELECT id, 'r' AS req, {p} AS p, 7 AS n, v, 0 AS extra, id AS K FROM {rows}) AS s"


def new(id_: int, **values: object) -> dict[str, object]:
    """A row as an INSERT of a few columns makes it."""
    return {"id": id_, "k": None, "v": None, "n": None, "req": "r", "p": None, **values}


BEHAVIOURS = [
    Behaviour(
        "update sets only the named columns of matched rows",
        "VALUES (101, 'x'), (122, 'y'), (999, 'z') AS s(id, v)",
        (matched(update(v="s.v")),),
        updated={101: {"v": "x"}, 122: {"v": "y"}},
        source_rows=3,
        matched=2,
    ),
    Behaviour(
        "update computes from both sides and can store NULL",
        "VALUES (101, 'x', 5), (222, 'y', 6) AS s(id, v, n)",
        (matched(update(v="upper(t.v) || s.v", n="t.n + s.n", k="NULL")),),
        updated={101: {"v": "V101x", "n": 6, "k": None}, 222: {"v": "V222y", "n": 8, "k": None}},
        source_rows=2,
        matched=2,
    ),
    Behaviour(
        "update all takes columns by name and ignores others",
        _FULL.format(p="'a'", rows="VALUES (101, 'x'), (208, 'y'), (999, 'z') AS r(id, v)"),
        (matched(update_all()),),
        updated={
            101: {"v": "x", "n": 7, "k": 101, "p": "a"},
            208: {"v": "y", "n": 7, "k": 208, "p": "a"},
        },
        source_rows=3,
        matched=2,
    ),
    Behaviour(
        "delete removes matched rows, and files of which no row is left",
        "(SELECT id FROM range(100, 110)) AS s",
        (matched(delete()),),
        deleted=frozenset(range(100, 110)),
        source_rows=10,
        matched=10,
    ),
    Behaviour(
        "delete of some rows under a condition",
        "VALUES (101, true), (102, false), (143, NULL), (144, true) AS s(id, gone)",
        (matched(delete(), "s.gone AND t.n < 9"),),
        deleted=frozenset({101, 144}),
        source_rows=4,
        matched=4,
    ),
    Behaviour(
        "insert stores NULL in columns that it leaves out",
        "VALUES (1, 'x'), (101, 'y') AS s(id, v)",
        (not_matched(insert(id="s.id", req="'r'", p="'new'")),),
        inserted=(new(1, p="new"),),
        source_rows=2,
    ),
    Behaviour(
        "insert takes values by position",
        "VALUES (1, 'x') AS s(id, v)",
        (not_matched(insert_positional("s.id", "2", "s.v", "3", "'r'", "'a'")),),
        inserted=(new(1, k=2, v="x", n=3, p="a"),),
        source_rows=1,
    ),
    Behaviour(
        "insert all takes columns by name and ignores others",
        _FULL.format(p="'b'", rows="VALUES (1, 'x'), (101, 'y') AS r(id, v)"),
        (not_matched(insert_all()),),
        inserted=(new(1, k=1, v="x", n=7, p="b"),),
        source_rows=2,
    ),
    Behaviour(
        "DEFAULT of a column without a default is NULL",
        "VALUES (1), (101) AS s(id)",
        (
            not_matched(insert(id="s.id", v="DEFAULT", req="'r'", p="'a'")),
            matched(update(v=" default ")),
        ),
        updated={101: {"v": None}},
        inserted=(new(1, p="a"),),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "update of rows that the source does not have",
        "VALUES (101), (999) AS s(id)",
        (by_source(update(v="concat(t.v, '!')"), "t.p = 'a' AND t.id < 104"),),
        updated={id_: {"v": f"v{id_}!"} for id_ in (100, 102, 103)},
        source_rows=2,
    ),
    Behaviour(
        "delete of all rows that the source does not have",
        "VALUES (101), (222), (999) AS s(id)",
        (by_source(delete()),),
        deleted=frozenset(_IDS - {101, 222}),
        source_rows=3,
    ),
    Behaviour(
        "all kinds of clauses together",
        "VALUES (101, 'new'), (122, 'gone'), (1, 'new'), (2, 'gone'), (143, 'move') AS s(id, v)",
        (
            matched(delete(), "s.v = 'gone'"),
            matched(update(p="'z'"), "s.v = 'move'"),
            matched(update(v="s.v")),
            not_matched(insert(id="s.id", v="s.v", req="'r'", p="'a'"), "s.v <> 'gone'"),
            by_source(delete(), "t.id BETWEEN 300 AND 301"),
            by_source(update(n="-1"), "t.p IS NULL"),
        ),
        updated={
            101: {"v": "new"},
            143: {"p": "z"},
            **{id_: {"n": -1} for id_ in range(400, 405)},
        },
        deleted=frozenset({122, 300, 301}),
        inserted=(new(1, v="new", p="a"),),
        source_rows=5,
        matched=3,
        smoke=True,
    ),
    Behaviour(
        "the first clause whose condition is true applies, NULL is not true",
        "(SELECT id FROM range(100, 110)) AS s",
        (
            matched(update(v="'low'"), "t.n < 3"),
            matched(delete(), "t.n < 5"),
            matched(update(v="'null'"), "t.n IS NULL"),
            matched(update(v="'rest'"), "t.n <> 6"),
        ),
        updated={
            **{id_: {"v": "low"} for id_ in (100, 101, 102)},
            109: {"v": "null"},
            **{id_: {"v": "rest"} for id_ in (105, 107, 108)},
        },
        deleted=frozenset({103, 104}),
        source_rows=10,
        matched=10,
    ),
    Behaviour(
        "new rows take the first clause that applies, or none",
        "VALUES (1, 1), (2, 2), (3, 3), (4, NULL) AS s(id, n)",
        (
            not_matched(insert(id="id", v="'one'", req="'r'"), "n = 1"),
            not_matched(insert(id="id", v="'two'", req="'r'"), "n <= 2"),
        ),
        inserted=(new(1, v="one"), new(2, v="two")),
        source_rows=4,
    ),
    Behaviour(
        "rows missing in the source take the first clause that applies",
        "VALUES (100) AS s(id)",
        (
            by_source(delete(), "t.id = 101"),
            by_source(update(v="'x'"), "t.id <= 102"),
            by_source(delete(), "t.id <= 103"),
        ),
        updated={102: {"v": "x"}},
        deleted=frozenset({101, 103}),
        source_rows=1,
    ),
    Behaviour(
        "a condition that is NULL never applies",
        "VALUES (101), (1) AS s(id)",
        (
            matched(delete(), "NULL"),
            not_matched(insert(id="s.id", req="'r'"), "CAST(NULL AS BOOLEAN)"),
            by_source(delete(), "t.n > NULL"),
        ),
        source_rows=2,
    ),
    Behaviour(
        "a statement that finds nothing to change makes no snapshot",
        "VALUES (1), (2) AS s(id)",
        (matched(delete()),),
        source_rows=2,
        matched=0,
        smoke=True,
    ),
    Behaviour(
        "every row of the table is updated",
        "VALUES (1) AS s(x)",
        (matched(update(n="coalesce(t.n, 0) + s.x")),),
        on="true",
        updated={row["id"]: {"n": (row["n"] or 0) + 1} for row in ORDERS.rows},
        source_rows=1,
        matched=len(ORDERS.rows),
    ),
    Behaviour(
        "an empty source changes no matched row",
        "(SELECT 1 AS id WHERE false) AS s",
        (matched(delete()), not_matched(insert(id="s.id", req="'r'"))),
        source_rows=0,
        matched=0,
    ),
    Behaviour(
        "an empty source leaves all rows to BY SOURCE",
        "(SELECT 1 AS id WHERE false) AS s",
        (matched(update(v="'x'")), by_source(delete())),
        deleted=frozenset(_IDS),
        source_rows=0,
        matched=0,
    ),
    Behaviour(
        "an empty table takes inserts",
        "VALUES (101, 'a'), (102, 'b') AS s(id, p)",
        (
            matched(delete()),
            not_matched(insert(id="s.id", req="'r'", p="s.p")),
            by_source(delete()),
        ),
        table=EMPTY,
        inserted=(new(101, p="a"), new(102, p="b")),
        source_rows=2,
        matched=0,
        smoke=True,
    ),
    Behaviour(
        "an empty table has nothing to match",
        "VALUES (101) AS s(id)",
        (matched(delete()), by_source(update(v="'x'"))),
        table=EMPTY,
        source_rows=1,
        matched=0,
    ),
    Behaviour(
        "new rows of several partitions, known, new and NULL",
        "VALUES (1, 'a'), (2, 'x'), (3, 'y z/='), (4, NULL), (5, 'x') AS s(id, p)",
        (not_matched(insert(id="s.id", req="'r'", p="s.p")),),
        inserted=(
            new(1, p="a"),
            new(2, p="x"),
            new(3, p="y z/="),
            new(4),
            new(5, p="x"),
        ),
        source_rows=5,
    ),
    Behaviour(
        "rows move to another partition, to the NULL partition and back",
        "VALUES (101, 'b'), (128, 'new'), (149, NULL), (402, 'a'), (205, 'a') AS s(id, p)",
        (matched(update(p="s.p", n="t.n")),),
        updated={
            101: {"p": "b"},
            128: {"p": "new"},
            149: {"p": None},
            402: {"p": "a"},
            205: {"p": "a"},
        },
        source_rows=5,
        matched=5,
    ),
    Behaviour(
        "rows of one file are moved, updated and deleted",
        "VALUES (100, 'b'), (102, 'u'), (104, 'd'), (109, 'b') AS s(id, what)",
        (
            matched(update(p="s.what"), "s.what = 'b'"),
            matched(update(n="50"), "s.what = 'u'"),
            matched(delete()),
        ),
        updated={100: {"p": "b"}, 102: {"n": 50}, 109: {"p": "b"}},
        deleted=frozenset({104}),
        source_rows=4,
        matched=4,
    ),
    Behaviour(
        "a row that is written as it was counts as updated",
        "VALUES (101) AS s(id)",
        (matched(update(v="t.v")),),
        updated={101: {"v": order(101, "a")["v"]}},
        source_rows=1,
        matched=1,
    ),
]
