"""What publishing took, in the metrics that a snapshot records."""

from __future__ import annotations

import pytest

from spark_jobs.contract.properties import metrics_property, result_of_snapshot
from spark_jobs.contract.result import Metrics
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from tests.connectors.paimon.test_commit import (
    between_check_and_commit,
    commit_nothing,
    delete_first_row,
    table,
)
from tests.support.paimon_tables import NAME

__all__ = ["table"]


def published(connector: Connector, table: TableHandle) -> CommittedSnapshot:
    handle, fragments = delete_first_row(connector, table)
    return connector.writes.finish_merge(
        table, handle, fragments, {"by": "me", **metrics_property(Metrics(deleted=1))}
    )


def check(connector: Connector, found: CommittedSnapshot, attempts: int, met: int) -> None:
    """The snapshot records what the answer says."""
    expected = Metrics(deleted=1, publish_attempts=attempts, snapshots_met=met)
    recorded = connector.metadata.load_table(NAME).native.snapshot.properties
    assert recorded == dict(found.properties)
    assert recorded["by"] == "me"
    assert result_of_snapshot("t", found.snapshot_id, recorded).metrics == expected


def test_at_once(connector: Connector, table: TableHandle) -> None:
    check(connector, published(connector, table), attempts=1, met=0)


def test_behind_others(connector: Connector, table: TableHandle) -> None:
    handle, fragments = delete_first_row(connector, table)
    commit_nothing(table)
    commit_nothing(table)
    properties = {"by": "me", **metrics_property(Metrics(deleted=1))}

    found = connector.writes.finish_merge(table, handle, fragments, properties)

    check(connector, found, attempts=1, met=2)


def test_after_a_lost_race(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_check_and_commit(monkeypatch, lambda: commit_nothing(table))

    check(connector, published(connector, table), attempts=2, met=1)


def test_properties_without_metrics_stay(connector: Connector, table: TableHandle) -> None:
    handle, fragments = delete_first_row(connector, table)

    found = connector.writes.finish_merge(table, handle, fragments, {"by": "me"})

    assert dict(found.properties) == {"by": "me"}
