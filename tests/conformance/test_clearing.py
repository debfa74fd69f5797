"""The behaviours of TRUNCATE and DROP PARTITION in jobs without a session, on every connector."""

from __future__ import annotations

import pytest

from spark_jobs.contract.inserts import ClearingStatement
from tests.conformance.behaviour import Behaviour
from tests.conformance.behaviours import overwrites
from tests.conformance.check import check
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import HARNESSES

CLEARING = [each for each in overwrites.BEHAVIOURS if isinstance(each.statement, ClearingStatement)]
CONNECTORS = [name for name in HARNESSES if not name.endswith("-pyarrow")]


@pytest.mark.slow
@pytest.mark.parametrize("connector", CONNECTORS)
@pytest.mark.parametrize("behaviour", CLEARING, ids=str)
def test_without_a_session(behaviour: Behaviour, connector: str, make_table: MakeTable) -> None:
    check(behaviour, make_table(connector, behaviour.table, partitioned=True), has_session=False)
