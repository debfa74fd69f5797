"""Expiring snapshots in batches: how many go, what is looked up between them, what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.contract.maintenance import Kept
from spark_jobs.errors import ErrorCode, InternalError, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.removal import SingleRemover
from tests.connectors.paimon.test_expire_snapshots import NOW, consume, expire, options, table
from tests.support.paimon_tables import NAME, overwrite, snapshot_ids
from tests.support.reachable import needed, stored

__all__ = ["table"]


@dataclass(frozen=True)
class CountingRemover(SingleRemover):
    """Says which snapshots it removed; fails after some batches of them, or calls ``then``."""

    batches: int | None
    then: Callable[[], object]
    dropped: list[list[str]]

    def remove_in_order(self, paths: Sequence[str]) -> None:
        """Remove one file after the other."""
        if paths:
            if len(self.dropped) == self.batches:
                raise InternalError(ErrorCode.STORAGE_UNAVAILABLE, "out of order", "")
            self.dropped.append([Path(path).name for path in paths])
        super().remove_in_order(paths)
        self.then()


def counting(
    connector: Connector, batches: int | None = None, then: Callable[[], object] = lambda: None
) -> tuple[PaimonMaintenance, list[list[str]]]:
    """The connector's maintenance, and the names of the snapshots that it drops, by batch."""
    maintenance: Any = connector.maintenance
    dropped: list[list[str]] = []
    remover = CountingRemover(maintenance._storage.filesystem, batches, then, dropped)
    return PaimonMaintenance(
        maintenance._metadata, replace(maintenance._storage, remover=remover)
    ), dropped


def test_by_default_all_that_may_go_do_in_batches(connector: Connector, table: Path) -> None:
    options(connector, **{"snapshot.expire.limit": "3"})
    maintenance, dropped = counting(connector)

    preview = expire(connector, dry_run=True)
    report = maintenance.expire_snapshots(NAME, NOW, dry_run=False)

    assert dropped == [["snapshot-1", "snapshot-2", "snapshot-3"], ["snapshot-4"]]
    assert snapshot_ids(connector) == [5]
    assert stored(table) == needed(table)
    assert report == preview
    assert (report.snapshots, report.snapshots_left) == (4, 0)


def test_without_an_option_fifty_go_at_a_time(connector: Connector, table: Path) -> None:
    for number in range(6, 54):
        overwrite(connector, number)
    maintenance, dropped = counting(connector)

    report = maintenance.expire_snapshots(NAME, NOW, dry_run=False)

    assert [len(batch) for batch in dropped] == [50, 2]
    assert snapshot_ids(connector) == [53]
    assert report.snapshots == 52


def test_what_ends_after_a_batch_goes_on_with_the_next(connector: Connector, table: Path) -> None:
    options(connector, **{"snapshot.expire.limit": "2"})
    maintenance, dropped = counting(connector, batches=1)

    with pytest.raises(JobError):
        maintenance.expire_snapshots(NAME, NOW, dry_run=False)

    assert dropped == [["snapshot-1", "snapshot-2"]]
    assert snapshot_ids(connector) == [3, 4, 5]
    assert stored(table) >= needed(table)
    assert expire(connector).snapshots == 2
    assert stored(table) == needed(table)


def test_a_consumer_that_appears_between_batches_is_seen(connector: Connector, table: Path) -> None:
    options(connector, **{"snapshot.expire.limit": "2"})
    maintenance, _ = counting(connector, then=lambda: consume(table, "reader", 4))

    report = maintenance.expire_snapshots(NAME, NOW, dry_run=False)

    assert snapshot_ids(connector) == [4, 5]
    assert stored(table) == needed(table)
    assert report.snapshots == 3
    assert report.kept == (Kept("consumer reader", snapshots=1),)


def test_the_report_says_how_many_more_may_go(connector: Connector, table: Path) -> None:
    consume(table, "reader", 4)
    spec = replace(NOW, max_deletes=1)

    preview = expire(connector, spec, dry_run=True)
    report = expire(connector, spec)

    assert snapshot_ids(connector) == [2, 3, 4, 5]
    assert report == preview
    assert (report.snapshots, report.snapshots_left) == (1, 2)
    assert report.kept == (Kept("consumer reader", snapshots=1),)
