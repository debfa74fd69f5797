"""What must hold whatever happens to the request that commits to the table ``db.t``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import pytest

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, found, ids_of
from tests.support.proxy import LATE_SECONDS, Fault, Proxy


class ServedTables(Protocol):
    """A table with the ids 0 to 4 in one file, in the catalog of a server."""

    def open(self, uri: str = "") -> Connector:
        """The catalog, at another address."""
        ...

    def library(self) -> Any:
        """pyiceberg's own catalog."""
        ...


def assert_one_snapshot(
    tables: ServedTables, proxy: Proxy, commits: str, fault: Fault | None
) -> None:
    """Check a commit, one of whose requests suffers a fault; ``commits``: as in a plan."""
    write = DirectWrite(tables.open(proxy.endpoint)).delete(0, 1).insert({"id": 20, "s": "new"})
    plan = proxy.add("POST", commits, fault) if fault else None

    committed = write.publish()

    assert plan is None or plan.seen > 0
    if fault == "late":
        time.sleep(LATE_SECONDS)
    assert ids_of(tables) == [0, 2, 3, 4, 20]
    assert found(tables.open(), write.operation_id) == committed
    assert len(tables.library().load_table(("db", "t")).snapshots()) == 2
    write.abort()
    assert ids_of(tables) == [0, 2, 3, 4, 20]


def assert_retry_knows(
    tables: ServedTables, folder: Path, proxy: Proxy, commits: str, fault: Fault
) -> None:
    """Check a commit without any answer, and its retry; data files are in ``folder``."""
    write = DirectWrite(tables.open(proxy.endpoint)).insert({"id": 20, "s": "new"})
    stored = set(folder.rglob("*.parquet"))
    proxy.add("POST", commits, fault, times=9)

    with pytest.raises(JobError) as caught:
        write.publish()

    assert caught.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert stored == set(folder.rglob("*.parquet"))
    if fault == "late":
        time.sleep(2 * LATE_SECONDS)
    is_there = fault == "late"
    assert (found(tables.open(), write.operation_id) is not None) == is_there
    if not is_there:
        retry = DirectWrite(tables.open(), operation_id=write.operation_id)
        retry.insert({"id": 20, "s": "new"}).publish()
    assert ids_of(tables) == [0, 1, 2, 3, 4, 20]
