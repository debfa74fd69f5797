"""Which files a statement reads; that its rows are right is for the conformance suite to show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.contract.statements import MergeCase
from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS
from tests.engine.plans import planned

_ALL = len(ORDERS.files)
_UPDATE = (matched(update(n="0")),)
_UPSERT = (*_UPDATE, not_matched(insert(id="s.id", req="'r'")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on", "source", "clauses", "files"),
    [
        # Keys: what has none of them between its smallest and its largest value.
        ("t.id = s.id", "VALUES (101), (105) AS s(id)", _UPDATE, 1),
        ("t.id = s.id", "VALUES (101), (105) AS s(id)", _UPSERT, 1),
        ("s.id + 1 = t.id", "VALUES (220), (221) AS s(id)", _UPDATE, 1),
        ("t.id = s.id", "VALUES (101), (349), (NULL) AS s(id)", _UPDATE, 2),
        ("t.v = s.v", "VALUES ('v400') AS s(v)", _UPDATE, 1),
        ("((t.id) = (s.id))", "VALUES (101), (105) AS s(id)", _UPDATE, 1),
        ("(t.p = 'a' AND (t.id = s.id))", "VALUES (101), (105) AS s(id)", _UPDATE, 1),
        # Partitions: exactly those of the keys, or those in which ON can hold.
        ("t.p = s.p", "VALUES ('c'), (NULL), ('none') AS s(p)", _UPDATE, 3),
        ("t.id = s.id AND t.p IN ('b', 'x')", "VALUES (101), (325) AS s(id)", _UPDATE, 1),
        ("t.id = s.id AND upper(t.p) > 'B'", "VALUES (101), (349) AS s(id)", _UPDATE, 1),
        ("t.p IS NULL AND s.id = 1", "VALUES (1) AS s(id)", _UPDATE, 1),
        # What says nothing about files.
        ("t.id <=> s.id", "VALUES (101) AS s(id)", _UPDATE, _ALL),
        ("t.id = s.id OR t.n = s.id", "VALUES (101) AS s(id)", _UPDATE, _ALL),
        ("t.id = s.id", "VALUES ('101') AS s(id)", _UPDATE, _ALL),
        ("t.id + 0 = s.id", "VALUES (101) AS s(id)", _UPDATE, _ALL),
        # BY SOURCE: its partitions and those of ON, never the keys of the source.
        ("t.id = s.id", "VALUES (101) AS s(id)", (by_source(delete()),), _ALL),
        ("t.id = s.id", "VALUES (101) AS s(id)", (*_UPDATE, by_source(delete(), "p = 'c'")), _ALL),
        (
            "t.id = s.id AND t.p = 'a'",
            "VALUES (101) AS s(id)",
            (*_UPDATE, by_source(delete(), "p = 'c' AND n < 3")),
            6,
        ),
    ],
)
def test_files_that_are_read(
    on: str,
    source: str,
    clauses: tuple[MergeCase, ...],
    files: int,
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)

    _, found = planned(Behaviour("", source, clauses, on=on), harness, monkeypatch)

    assert found == files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on", "source", "files"),
    [
        ("t.id = s.id", "VALUES (101), (105) AS s(id)", 1),
        ("t.id = s.id", "VALUES (101), (349), (NULL) AS s(id)", _ALL - 1),
        ("t.p = s.p", "VALUES ('c'), (NULL), ('none') AS s(p)", 3),
    ],
)
def test_of_a_large_source_the_smallest_and_the_largest_key_count(
    on: str,
    source: str,
    files: int,
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    behaviour = Behaviour("", source, _UPDATE, on=on)

    _, found = planned(behaviour, harness, monkeypatch, PlanLimits(broadcast=0))

    assert found == files
