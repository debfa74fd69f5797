"""Which commits of a history count, where later ones took some of them back.

Jobs and the Airflow side look for commits by this one rule. An undo records the operations that it
took back. It takes back what these committed before it, and not what they commit again later. An
undo that was itself taken back does not count either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.properties import DAG_ID, OPERATION_ID, RUN_ID
from spark_jobs.contract.undo import UndoRunSpec

UNDONE_OPERATIONS: Final = "merge.undone-operations"
UNDONE_DAG: Final = "merge.undone-dag-id"
UNDONE_RUN: Final = "merge.undone-run-id"
# Statements of which a snapshot does not tell that their operation has come to its end.
PARTIAL: Final = frozenset((CompactSpec.kind, UndoRunSpec.kind))

T = TypeVar("T")


class Undone:
    """What later commits took back; it is shown the snapshots of a history from the newest on.

    ``operations`` are taken back by a commit that is yet to come.
    """

    def __init__(self, operations: Iterable[str] = ()) -> None:
        self._operations = set(operations)

    def counts(self, properties: Mapping[str, str]) -> bool:
        """Whether the next older snapshot, which records ``properties``, was not taken back."""
        if properties.get(OPERATION_ID) in self._operations:
            return False
        self._operations |= undone_operations(properties)
        return True


def undone_operations(properties: Mapping[str, str]) -> frozenset[str]:
    """The ids of the operations that a snapshot took back; none if it is no undo."""
    try:
        found = json.loads(properties.get(UNDONE_OPERATIONS) or "[]")
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def undone_properties(dag_id: str, run_id: str, operations: Iterable[str]) -> dict[str, str]:
    """What the snapshot of an undo records."""
    listed = json.dumps(sorted(set(operations)), separators=(",", ":"))
    return {UNDONE_OPERATIONS: listed, UNDONE_DAG: dag_id, UNDONE_RUN: run_id}


def counting(history: Iterable[T], properties: Callable[[T], Mapping[str, str]]) -> list[T]:
    """The snapshots of a history, newest first, that were not taken back."""
    undone = Undone()
    return [each for each in history if undone.counts(properties(each))]


def is_of_run(properties: Mapping[str, str], dag_id: str, run_id: str) -> bool:
    """Whether a snapshot is a change that a run made; an undo of the same run is none of them."""
    origin = (properties.get(DAG_ID), properties.get(RUN_ID))
    undid = (properties.get(UNDONE_DAG), properties.get(UNDONE_RUN))
    return origin == (dag_id, run_id) and undid != origin and OPERATION_ID in properties
