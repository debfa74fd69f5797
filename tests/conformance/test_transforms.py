"""Behaviours of tables partitioned by transforms of columns: Iceberg's."""

from __future__ import annotations

import pytest

from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import transforms
from tests.conformance.check import check
from tests.conformance.conftest import MakeTable
from tests.support.table_kinds import ICEBERG_BUCKETS, ICEBERG_DAYS, ICEBERG_TRUNCATED

_CASES = [
    pytest.param(behaviour, kind.name, id=f"{behaviour}-{kind.name}")
    for behaviours, kinds in (
        (transforms.BY_BUCKET, ICEBERG_BUCKETS),
        (transforms.BY_DAY, ICEBERG_DAYS),
        (transforms.BY_TRUNCATE, ICEBERG_TRUNCATED),
    )
    for behaviour in behaviours
    for kind in kinds
]


@pytest.mark.by_turns(6)
@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "connector"), _CASES)
def test_behaviour(behaviour: Behaviour, connector: str, make_table: MakeTable) -> None:
    check(behaviour, make_table(connector, behaviour.table, partitioned=False))
