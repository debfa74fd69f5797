"""Old metadata files go at each commit, if the table says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.contract.maintenance import CreateTagSpec, RollbackSpec
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_history import (
    NAME,
    care,
    expire,
    ids,
    made,
    root,
    snapshots,
    table,
)
from tests.connectors.iceberg.test_compaction import compact

KEPT = {"write.metadata.previous-versions-max": "2"}


@pytest.mark.parametrize("deletes", [True, False])
def test_files_that_are_no_longer_logged_go_with_each_commit(tmp_path: Path, deletes: bool) -> None:
    named = {"write.metadata.delete-after-commit.enabled": str(deletes).lower(), **KEPT}
    catalog = made(tmp_path, 3, **named)
    connector = catalog.open()

    def files() -> set[str]:
        return {each.name for each in root(catalog).rglob("*.metadata.json")}

    def logged() -> set[str]:
        now = table(catalog)
        places = [now.metadata_location, *(e.metadata_file for e in now.metadata.metadata_log)]
        return {each.rpartition("/")[2] for each in places}

    write = DirectWrite(connector).delete(0, 0)
    write.publish()
    connector.writes.release_guard(write.table, write.operation_id)
    compact(connector)
    care(connector).create_tag(NAME, CreateTagSpec("t", snapshots(catalog)[0]))
    spec = RollbackSpec(snapshots(catalog)[-2], force=True)
    care(connector).roll_back(NAME, spec, dag_id="", dry_run=False)
    expire(connector, older_than="0 s")

    assert len(logged()) == 3
    assert logged() <= files()
    assert (files() == logged()) == deletes, files() - logged()
    assert len(ids(catalog)) == 2
