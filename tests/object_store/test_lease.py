"""The lease of a run on an object store, where folders are only the beginning of names."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.registry import open_connector
from spark_jobs.engine.runtime.lease import Lease, LeasedTask
from tests.support.stores import ObjectStore


def lease_of(store: ObjectStore) -> Lease:
    storage = open_connector(store.new_catalog(), store.credentials).storage
    return Lease(storage.filesystem, f"{storage.root}/_operations/operation-1")


def test_a_lease_ends_for_every_process(each_store: ObjectStore) -> None:
    lease = lease_of(each_store)
    other: Lease = pickle.loads(pickle.dumps(lease))

    assert not lease.is_held()
    lease.take()
    assert other.is_held()
    lease.end()
    assert not other.is_held()
    lease.end()


def test_rows_of_a_source_that_come_after_the_clean_up_are_removed(each_store: ObjectStore) -> None:
    lease = lease_of(each_store)
    lease.take()
    folder = f"{lease.scratch}/source-1"

    def rows() -> Iterator[pa.RecordBatch]:
        with lease.filesystem.open_output_stream(f"{folder}/0.parquet") as stream:
            stream.write(b"a row of somebody")
            yield pa.RecordBatch.from_pydict({"file": ["0.parquet"]})

    running = LeasedTask(lambda _: rows(), lease, folder)([])
    next(running)
    lease.end()
    assert list(running) == []

    below = pafs.FileSelector(lease.scratch, recursive=True, allow_not_found=True)
    assert lease.filesystem.get_file_info(below) == []
