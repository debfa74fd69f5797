"""INSERT and INSERT OVERWRITE on each of their paths: what they leave does not depend on it.

``test_behaviours`` runs them on the path that suits them, which is ``streamed`` for most.
"""

from __future__ import annotations

import pytest

from spark_jobs.contract.inserts import InsertStatement
from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import overwrites
from tests.conformance.check import check
from tests.conformance.conftest import MakeTable
from tests.support.insert_paths import INSERT_PATHS, InsertPath, forced_insert_path
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

_KINDS = ("folder", "append-cow", "append-dv", "bucketed-cow", "iceberg-cow", "iceberg-v3-mor")
_CASES = [
    (behaviour, kind, path)
    for behaviour in overwrites.BEHAVIOURS
    if isinstance(behaviour.statement, InsertStatement)
    for kind in _KINDS
    for path in INSERT_PATHS
    if path != "streamed"
]
_PARTS = 40


@pytest.mark.parametrize(
    ("behaviour", "kind", "path"),
    [case for number, case in enumerate(_CASES) if has_turn(number, _PARTS)],
    ids=str,
)
def test_behaviour_of_an_insert(
    behaviour: Behaviour, kind: str, path: InsertPath, make_table: MakeTable
) -> None:
    if kind.startswith("iceberg") and behaviour.needs_narrow_types:
        pytest.skip("Iceberg has no such types")
    harness = make_table(kind, behaviour.table, partitioned=True)

    with forced_insert_path(path):
        check(behaviour, harness)
