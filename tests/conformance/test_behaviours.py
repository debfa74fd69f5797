"""Every behaviour on every connector, on partitioned tables and on tables without partitions.

Of the combinations of behaviour, connector and layout those run in which the layout can matter, for
the time that each takes; ``MERGE_CONFORMANCE=all`` runs all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import BEHAVIOURS, clauses, filtered
from tests.conformance.check import check
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import HARNESSES
from tests.table_kinds import KINDS

_ALL = os.environ.get("MERGE_CONFORMANCE") == "all"


def _cases() -> Iterator[object]:
    for behaviour in BEHAVIOURS:
        for connector in HARNESSES:
            for partitioned in _layouts(behaviour, connector):
                quick = behaviour.smoke and partitioned and _is_quick(behaviour, connector)
                yield pytest.param(
                    behaviour,
                    connector,
                    partitioned,
                    id=f"{behaviour}-{connector}-{'partitioned' if partitioned else 'flat'}",
                    marks=() if quick else pytest.mark.slow,
                )


def _is_quick(behaviour: Behaviour, connector: str) -> bool:
    return connector == "append-cow" or behaviour.name == "all kinds of clauses together"


def _layouts(behaviour: Behaviour, connector: str) -> tuple[bool, ...]:
    """Partitioned, flat, or both."""
    kind = KINDS.get(connector)
    if _ALL:
        return (True, False)
    if kind is not None and kind.buckets is not None:
        writing = (*clauses.BEHAVIOURS, *filtered.BEHAVIOURS) if kind.marks_rows else ()
        writes = behaviour in writing
        return (True,) if behaviour.smoke or writes else ()
    in_both = behaviour.smoke or (behaviour in clauses.BEHAVIOURS and connector != "folder")
    return (True, False) if in_both else (True,)


@pytest.mark.parametrize(("behaviour", "connector", "partitioned"), list(_cases()))
def test_behaviour(
    behaviour: Behaviour, connector: str, partitioned: bool, make_table: MakeTable
) -> None:
    check(behaviour, make_table(connector, behaviour.table, partitioned=partitioned))


def test_every_behaviour_has_a_name_of_its_own() -> None:
    names = [behaviour.name for behaviour in BEHAVIOURS]

    assert len(names) == len(set(names))
