"""Every behaviour on every connector, on partitioned tables and on tables without partitions.

``make test-all`` runs every combination of behaviour, connector and layout. ``make test`` runs
those marked ``smoke`` on the folder connector and on a fifth of the others, and of the rest the
24th whose turn it is (``MERGE_TESTS_TURN``) on Paimon's plain partitioned tables and a
120th elsewhere: tests/property and tests/judge know these tables too. What the analysis
refuses runs on the folder connector alone: by then a connector has only told the schema. Iceberg's
tables that are partitioned by transforms are layouts of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import pytest

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import BEHAVIOURS, clauses, filtered, overwrites
from tests.conformance.check import check
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import (
    BY_DAY,
    COPY_ON_WRITE,
    HARNESSES,
    LIMITS,
    PLANNED_HARNESSES,
    PLANS,
    TRANSFORMED_HARNESSES,
)
from tests.support.forced_plans import forced_plan
from tests.support.table_kinds import APPEND_COW, BUCKETED_COW, BUCKETED_DV, ICEBERG, KINDS
from tests.support.turns import EVERYTHING, has_turn

_PLAIN_PARTS = 24
_PARTS = 120
_SMOKE_PARTS = 5
_ICEBERG = (*(kind.name for kind in ICEBERG), *TRANSFORMED_HARNESSES)
# Of each group one has a turn.
_ALIKE = (
    (BUCKETED_COW.name, BUCKETED_DV.name),
    ("append-dv-pyarrow", "append-dv-prepared"),
    tuple(each for each in _ICEBERG if each not in BY_DAY),
    BY_DAY,
)
# Errors of the analysis.
_REFUSED = {
    ErrorCode.AMBIGUOUS_REFERENCE,
    ErrorCode.COLUMN_NOT_FOUND,
    ErrorCode.DUPLICATE_ASSIGNMENT,
    ErrorCode.EXPRESSION_INVALID,
    ErrorCode.EXPRESSION_NOT_ALLOWED,
    ErrorCode.SYNTAX_ERROR,
    ErrorCode.TYPE_MISMATCH,
}


def _cases() -> Iterator[object]:
    for number, behaviour in enumerate(BEHAVIOURS):
        for connector in (*HARNESSES, *PLANNED_HARNESSES, *TRANSFORMED_HARNESSES):
            if not _means_something(behaviour, connector):
                continue
            if not (EVERYTHING or _is_chosen(behaviour, number, connector)):
                continue
            for partitioned in _layouts(behaviour, number, connector):
                layout = "partitioned" if partitioned else "flat"
                id_ = f"{behaviour}-{connector}-{layout}"
                yield pytest.param(behaviour, connector, partitioned, id=id_)


def _means_something(behaviour: Behaviour, connector: str) -> bool:
    """Whether the connector can run the behaviour in any layout."""
    if connector in PLANS:
        return behaviour.statement is None
    if connector in _ICEBERG and behaviour.needs_narrow_types:
        return False
    if connector in BY_DAY and behaviour.table.time is None:
        return False
    return not (connector in TRANSFORMED_HARNESSES and behaviour.needs_partitions)


def _is_chosen(behaviour: Behaviour, number: int, connector: str) -> bool:
    """Whether it runs on this connector without being asked for."""
    if behaviour.fails is not None and behaviour.fails.code in _REFUSED:
        return connector == "folder"
    parts = _PLAIN_PARTS if connector == APPEND_COW.name else _PARTS
    alike = next((each for each in _ALIKE if connector in each), (connector,))
    place = parts * alike.index(connector)
    return has_turn(number + place, parts * len(alike)) or (
        behaviour.smoke and _one_of(alike, number, connector) and _has_smoke(connector, number)
    )


def _has_smoke(connector: str, number: int) -> bool:
    return connector == "folder" or has_turn(number + crc32(connector.encode()), _SMOKE_PARTS)


def _one_of(connectors: tuple[str, ...], number: int, connector: str) -> bool:
    """Whether of these connectors it is this one's turn."""
    return has_turn(number + connectors.index(connector), len(connectors))


def _layouts(behaviour: Behaviour, number: int, connector: str) -> tuple[bool, ...]:
    """Partitioned, flat, or both."""
    kind = KINDS.get(connector)
    if connector in TRANSFORMED_HARNESSES:
        return (False,)
    if EVERYTHING:
        return (True,) if behaviour.needs_partitions else (True, False)
    if connector in LIMITS or connector in PLANS:
        chosen = connector in ("append-dv-pyarrow", "append-dv-prepared")
        reads = chosen and behaviour not in overwrites.BEHAVIOURS
        return (True,) if reads else ()
    if kind is not None and kind.buckets is not None:
        writing = (*clauses.BEHAVIOURS, *filtered.BEHAVIOURS) if kind.marks_rows else ()
        writes = behaviour in writing
        return (True,) if behaviour.smoke or writes else ()
    if behaviour in overwrites.REFUSED:
        return (True,) if connector in COPY_ON_WRITE else ()
    if behaviour.needs_partitions:
        return (True,)
    if behaviour.smoke and connector in COPY_ON_WRITE:
        return (True, False) if _one_of(COPY_ON_WRITE, number, connector) else (True,)
    return (True,)


@pytest.mark.parametrize(("behaviour", "connector", "partitioned"), list(_cases()))
def test_behaviour(
    behaviour: Behaviour, connector: str, partitioned: bool, make_table: MakeTable
) -> None:
    harness = make_table(connector, behaviour.table, partitioned=partitioned)
    with forced_plan(PLANS.get(connector, "auto")) as tally:
        result = check(behaviour, harness, LIMITS.get(connector))
    tally.require_ran(result)


def test_every_behaviour_has_a_name_of_its_own() -> None:
    names = [behaviour.name for behaviour in BEHAVIOURS]

    assert len(names) == len(set(names))
