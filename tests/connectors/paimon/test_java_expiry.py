"""What is left of random tables after expiry and orphan removal reads the same in Java."""

from __future__ import annotations

import random

import pytest

from tests.connectors.paimon.histories import new_history
from tests.connectors.paimon.random_maintenance import expire, remove_orphans
from tests.judge.judge import facts_from_java, read_with_java

TABLE = "shop.orders"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [63, 71, 5])
@pytest.mark.usefixtures("java")
def test_java_reads_every_view_that_is_left(tmp_path, seed):
    history = new_history(tmp_path, seed, commits=7)
    history.branch()
    chosen = random.Random(seed)

    expire(history, chosen)
    remove_orphans(history, chosen)

    for (line, at), rows in history.rows.items():
        branch = None if line == "main" else line
        place = {"snapshot": at} if isinstance(at, int) else {"tag": at}
        found = read_with_java(tmp_path, TABLE, branch=branch, **place)
        assert sorted(found, key=repr) == rows, (line, at)
    ids = [each["id"] for each in facts_from_java(tmp_path, TABLE).snapshots]
    assert sorted(ids) == history.snapshots()
