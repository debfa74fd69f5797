"""Temporary files of killed jobs on an object store, which keeps no time of a folder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spark_jobs.connectors.registry import open_connector
from spark_jobs.engine.runtime.leftovers import leftovers_of
from spark_jobs.engine.runtime.operations import OperationLog
from tests.support.stores import ObjectStore

SCRATCH = f"_operations/op-1-{'a' * 32}"
EMPTY = f"_operations/op-2-{'b' * 32}"
DRY_RUN = "_dry_run-op-3"


def test_copies_of_sources_go_by_age(each_store: ObjectStore) -> None:
    storage = open_connector(each_store.new_catalog(), each_store.credentials).storage
    log = OperationLog(storage)
    for folder in (SCRATCH, DRY_RUN):
        log.lease(folder).take()
        path = f"{storage.root}/{folder}/source-1/0.parquet"
        with storage.filesystem.open_output_stream(path) as stream:
            stream.write(b"a row of somebody")
    storage.filesystem.create_dir(f"{storage.root}/{EMPTY}")

    def later() -> datetime:
        return datetime.now(UTC) + timedelta(days=8)

    assert set(leftovers_of(storage, "0 s").folders) <= {EMPTY}
    found = leftovers_of(storage, "0 s", later)
    found.remove()

    sizes = {folder: size for folder, size in found.folders.items() if folder != EMPTY}
    assert sizes == {SCRATCH: 17, DRY_RUN: 17}
    assert not leftovers_of(storage, "0 s", later).folders
    assert not log.lease(SCRATCH).is_held()
