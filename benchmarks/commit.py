"""Commits: how many a second, and how long one takes on a large table.

``.venv-spark/bin/python -m benchmarks.commit``: 1, 4 and 8 processes insert a row at a time, each
into a partition of its own, on local files and with ``--store s3`` on an S3 server on loopback;
then one commit on a table of 20,000 files and 1,000 snapshots. No Spark: begin, sink and finish.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.support import many_files
from tests.support.gateway import gateway_program, serving
from tests.support.paimon_tables import NAME, ROW_ID, create, inserts, store
from tests.support.stores import ObjectStore

# DELETE of the first row of the first file.
_FIRST_ROW = pa.RecordBatch.from_pydict(
    {
        rows.OPERATION: pa.array([rows.DELETE], pa.int8()),
        rows.CASE_NUMBER: pa.array([0], pa.int32()),
        rows.ROW_ID: pa.array([{"file": 0, "position": 0}], ROW_ID),
        rows.FROM_UPDATE: pa.array([False]),
    }
)
_CONTEXT = multiprocessing.get_context("spawn")


def _nothing(_: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
    return ()


def insert(connector: Connector, table: TableHandle, operation_id: str, row: dict[str, Any]) -> int:
    """Commit one row; the id of the snapshot."""
    operation = Operation(operation_id, "digest", {})
    write = MergeWrite(operation, (), ((),), (), 1 << 27, read_set=_nothing)
    handle = connector.writes.begin_merge(table, write)
    fragments = store(handle, inserts(table, [row]))
    snapshot_id = connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id
    connector.writes.release_guard(table, operation_id)
    return snapshot_id


def _write(
    catalog: CatalogSpec,
    credentials: Mapping[str, str],
    writer: int,
    seconds: float,
    barrier: Any,
    counts: Any,
) -> None:
    connector = open_connector(catalog, credentials)
    insert(connector, connector.metadata.load_table(NAME), f"warm-{writer}", {"id": 0, "p": writer})
    barrier.wait()
    count, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        table = connector.metadata.load_table(NAME)
        insert(connector, table, f"op-{writer}-{count}", {"id": count, "p": writer})
        count += 1
    counts.put(count)


def commits_per_second(
    catalog: CatalogSpec, credentials: Mapping[str, str], writers: int, seconds: float
) -> float:
    """Commits of all writers together; a new table for each call."""
    connector = open_connector(catalog, credentials)
    create(connector, {"id": "int", "p": "int"}, ["p"])
    barrier, counts = _CONTEXT.Barrier(writers), _CONTEXT.Queue()
    processes = [
        _CONTEXT.Process(
            target=_write, args=(catalog, credentials, writer, seconds, barrier, counts)
        )
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    total = sum(counts.get(timeout=seconds + 120) for _ in processes)
    for process in processes:
        process.join()
    return float(total / seconds)


def large_table(warehouse: Path, snapshots: int) -> dict[str, float]:
    """Seconds of the steps of a DELETE that rewrites one of 20,000 files."""
    connector = many_files.create_table(warehouse)
    row = {"day": many_files.FIRST_DAY, "id": -1, "n": 0}
    for number in range(1, snapshots):
        insert(connector, connector.metadata.load_table(many_files.NAME), f"op-{number}", row)
    many_files.fill_table(connector, days=1000, files_per_day=20)
    return timed_delete(connector)


def timed_delete(connector: Connector) -> dict[str, float]:
    """Seconds of the steps of a DELETE that rewrites the first file of a table of many."""
    seconds: dict[str, float] = {}
    operation_id = uuid.uuid4().hex
    started = time.monotonic()

    def note(step: str) -> None:
        seconds[step] = time.monotonic() - started - sum(seconds.values())

    table = connector.metadata.load_table(many_files.NAME)
    files = connector.metadata.plan_files(table)
    note("plan")
    write = MergeWrite(Operation(operation_id, "digest", {}), files, ((),), (), 1 << 27)
    handle = connector.writes.begin_merge(table, write)
    note("begin")
    fragments = store(handle, _FIRST_ROW)
    note("sink")
    properties = {OPERATION_ID: operation_id}
    connector.writes.finish_merge(table, handle, fragments, properties)
    note("commit")
    table = connector.metadata.load_table(many_files.NAME)
    note("load again")
    assert connector.writes.find_commit(table, operation_id) is not None
    note("find again")
    assert connector.writes.find_commit(table, "nobody") is None
    note("find nothing")
    return seconds


@contextmanager
def _place(kind: str) -> Iterator[tuple[CatalogSpec, Mapping[str, str]]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "local":
            yield CatalogSpec("paimon", name), {}
            return
        key = ObjectStore("gateway", "")
        with serving(gateway_program(), folder, key.access_key, key.secret_key) as endpoint:
            server = ObjectStore("gateway", endpoint)
            yield server.new_catalog(), server.credentials


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["local", "s3"], default="local")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--snapshots", type=int, default=1000)
    chosen = parser.parse_args()
    for writers in (1, 4, 8):
        with _place(chosen.store) as (catalog, credentials):
            rate = commits_per_second(catalog, credentials, writers, chosen.seconds)
        sys.stdout.write(f"{chosen.store}: {writers} writers, {rate:.1f} commits/s\n")
        sys.stdout.flush()
    if chosen.store == "local":
        with tempfile.TemporaryDirectory() as name:
            seconds = large_table(Path(name), chosen.snapshots)
        steps = ", ".join(f"{step} {value:.2f} s" for step, value in seconds.items())
        sys.stdout.write(f"20,000 files, {chosen.snapshots} snapshots: {steps}\n")


if __name__ == "__main__":
    main()
