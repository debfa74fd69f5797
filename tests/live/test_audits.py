"""The audit has each change once, although the job is killed between the target and its audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from spark_jobs.contract.side_outputs import AUDIT_COLUMNS
from tests.live.orders import ONCE, SLOWLY, TWICE, Orders
from tests.live.sabotage import kill_job, pause_after_commit

RUN = "manual__1"
_CREATE = """
columns = json.loads({columns!r})
tables.create(connector, columns, name=TableName("shop", {name!r}))
"""
_ROWS = """
print(json.dumps(tables.read(connector, TableName("shop", {name!r})), default=str))
"""


def test_killed_between_the_target_and_its_audit(orders: Callable[..., Orders]) -> None:
    table = orders(retries=2, value=SLOWLY)
    audit = f"{table.name}_audit"
    table.python(_CREATE.format(columns=json.dumps(dict(AUDIT_COLUMNS)), name=audit))
    dag: dict[str, Any] = {"retries": 2, "audit_table": f"shop.{audit}"}
    table.write_dag(value=SLOWLY, **dag)
    table.trigger(RUN)

    operation_id = pause_after_commit(table)
    kill_job(table, operation_id)
    assert _rows(table, audit) == []
    kept = [each for each in table.operations.glob("*.rows") if each.is_dir()]
    assert kept, "the rows are kept until their table has them"

    assert table.ended(RUN) == "success"
    assert table.task(RUN)["try_number"] == 2
    assert table.snapshots() == [1, 2]
    assert table.rows() == ONCE
    found = _rows(table, audit)
    told = {
        (row["operation"], row["old_values"], row["new_values"], row["clause"]) for row in found
    }
    assert told == {
        ("update", '{"id":2,"n":200}', '{"n":220}', 1),
        ("insert", None, '{"id":3,"n":30}', 2),
    }
    assert len(found) == 2
    for row in found:
        assert (row["operation_id"], row["snapshot_id"]) == (operation_id, 2)
        assert (row["dag_id"], row["run_id"], row["task_id"]) == (table.dag_id, RUN, "merge")
    assert not list(table.operations.glob("*.rows"))
    assert table.event_snapshots() == [2], "no event is sent for the audit"

    table.write_dag(**dag)
    table.server.client.clear(table.dag_id, RUN, "merge")
    assert table.ended(RUN) == "success"
    assert table.rows() == TWICE
    assert len(_rows(table, audit)) == 4
    assert {row["snapshot_id"] for row in _rows(table, audit)} == {2, 3}


def _rows(table: Orders, audit: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(table.python(_ROWS.format(name=audit)).splitlines()[-1])
    return rows
