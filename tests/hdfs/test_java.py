"""Paimon's own Java library and this connector on one table in HDFS, at the same time."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.judge.hdfs_server import Hdfs
from tests.judge.judge import read_with_java
from tests.judge.writer import JavaTable
from tests.support.paimon_tables import NAME, append, read, snapshot_ids

_SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32())])
_COMMITS = 15
_TRIES = 100


def _append_until_done(connector: Connector, row: dict[str, int]) -> None:
    """Append again after conflicts: this append depends on the whole table."""
    for _ in range(_TRIES):
        try:
            append(connector, [row], uuid.uuid4().hex)
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_CONFLICT:
                raise
        else:
            return
    raise AssertionError(f"{_TRIES} conflicts")


def test_both_append_at_the_same_time(hdfs: Hdfs) -> None:
    catalog = hdfs.new_catalog()
    warehouse: Any = catalog.warehouse
    java = JavaTable.create(warehouse, str(NAME), _SCHEMA, ["p"])
    connector = open_connector(catalog, {})
    failures: list[Exception] = []

    def append_with_java() -> None:
        try:
            for number in range(_COMMITS):
                rows = [{"id": number, "p": 0}]
                java.append(pa.Table.from_pylist(rows, schema=_SCHEMA))
        except Exception as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    other = threading.Thread(target=append_with_java)
    other.start()
    for number in range(_COMMITS):
        _append_until_done(connector, {"id": 100 + number, "p": 1})
    other.join()

    assert failures == []
    expected = [*range(_COMMITS), *range(100, 100 + _COMMITS)]
    assert sorted(row["id"] for row in read(connector)) == expected
    assert sorted(row["id"] for row in read_with_java(warehouse, str(NAME))) == expected
    assert snapshot_ids(connector) == list(range(1, 2 * _COMMITS + 1))
