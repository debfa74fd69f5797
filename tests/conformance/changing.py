"""Statements that change rows, of each kind, on each kind of table and under each plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update,
    update_set,
)

_ALL = "s(id, k, v, n, req, p)"
MIXED = f"""VALUES (100, 1, 'x', 9, 'r', 'a'), (101, 1, 'x', 1, 'r', 'a'),
    (120, 1, 'x', 9, 'r', 'b'), (140, 1, 'x', 1, 'r', 'c'), (500, 1, 'x', 1, 'r', 'a') AS {_ALL}"""
# None of them is in the table yet.
_OF_A = f"""VALUES (701, 1, 'x', 1, 'r', 'a'), (702, 1, 'x', 1, 'r', 'a'),
    (703, 1, 'x', 1, 'r', 'a'), (704, 1, 'x', 1, 'r', 'a'), (705, 1, 'x', 1, 'r', 'a') AS {_ALL}"""
_KEYS_AND_ROWS = """VALUES (1, NULL, NULL, NULL, NULL, NULL, NULL),
    (2, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, 701, 1, 'x', 1, 'r', 'a'),
    (NULL, 702, 1, 'x', 1, 'r', 'b'), (NULL, 703, 1, 'x', 1, 'r', 'a')
    AS s(replaced, id, k, v, n, req, p)"""
_INSERTS = not_matched(insert_all())
STATEMENTS = [
    Behaviour(
        "merge",
        MIXED,
        (matched(delete(), "s.n = 9"), matched(update(v="s.v")), not_matched(insert_all())),
    ),
    update_set("update", {"v": "'y'"}, "p = 'a'"),
    delete_from("delete", "n = 1"),
    delete_from("delete of partitions", "p = 'a'"),
    Behaviour("insert", MIXED.replace("100", "700"), (), statement=InsertIntoSpec("s")),
    Behaviour("dynamic", MIXED, (), statement=InsertOverwriteSpec("s", "dynamic")),
    Behaviour("table", MIXED, (), statement=InsertOverwriteSpec("s", "table")),
    Behaviour("drop", MIXED, (), statement=DropPartitionsSpec(({"p": "'a'"},))),
    Behaviour("truncate", MIXED, (), statement=TruncateTableSpec()),
    Behaviour(
        "static", _OF_A, (), statement=InsertOverwriteSpec("s", "static", partition={"p": "'a'"})
    ),
    # As docs/strategies.md writes both.
    Behaviour("replace where", _OF_A, (by_source(delete(), "t.n = 1"), _INSERTS), on="FALSE"),
    Behaviour(
        "delete and insert",
        _KEYS_AND_ROWS,
        (matched(delete()), not_matched(insert_all(), "s.replaced IS NULL")),
        on="t.n = s.replaced",
    ),
]
MERGE = STATEMENTS[0]
KINDS = ("append-cow", "append-dv", "row-tracking", "primary-key", "iceberg-cow", "iceberg-mor")
# Only merges have a choice of plans, and those of tables with a primary key have none.
PLANNED = [
    (kind, plan)
    for kind in KINDS
    if kind != "primary-key"
    for plan in ("join", "located", "prepared")
]


def changing_cases(
    parts: int, always: Collection[str] = (), *, rows_are_known: bool = True
) -> Iterator[object]:
    """Parameters ``behaviour``, ``kind`` and ``plan``, taken by turns but for the ids ``always``.

    ``rows_are_known``: without INSERT INTO tables with a primary key, which replace rows unread.
    """
    for behaviour in STATEMENTS:
        for kind in KINDS:
            is_insert = isinstance(behaviour.statement, InsertIntoSpec)
            if rows_are_known and kind == "primary-key" and is_insert:
                continue
            name = f"{behaviour}-{kind}"
            marks = () if name in always else pytest.mark.by_turns(parts)
            yield pytest.param(behaviour, kind, "auto", marks=marks, id=name)
    for kind, plan in PLANNED:
        marks = pytest.mark.by_turns(len(PLANNED))
        yield pytest.param(MERGE, kind, plan, marks=marks, id=f"merge-{kind}-{plan}")


def files_of(warehouse: Path) -> dict[str, bytes]:
    """The content of every file of the table, not of the workspace beside it."""
    return {
        str(path.relative_to(warehouse)): path.read_bytes()
        for path in sorted(warehouse.rglob("*"))
        if path.is_file() and "_operations" not in path.parts
    }
