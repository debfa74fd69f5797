"""Table care through AWS Glue, which moto plays: each operator's job, also with a lost answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    RemoveOrphanFilesSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run, run_all
from tests.connectors.iceberg.glue_tables import GlueTables, before_commits
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    care,
    ids,
    needed,
    references,
    root,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.test_cherry_pick import stage
from tests.judge.glue_server import glue
from tests.support import compaction_runs, iceberg_tables
from tests.support.proxy import Proxy, proxy_before
from tests.support.stores import ObjectStore, moto

__all__ = ["glue", "moto"]
pytestmark = pytest.mark.slow

NOW = ExpireSnapshotsSpec(older_than="0 s", retain_min=1)
LOST = "data/lost.parquet"


@pytest.fixture
def tables(glue: ObjectStore, tmp_path: Path) -> Iterator[GlueTables]:
    """Three snapshots append 0 to 2: a tag has the first, a branch 7, too; 9 is staged."""
    made = GlueTables(glue, f"file://{tmp_path}")
    made.library().create_namespace("db")
    make(made)
    yield made
    made.drop_all()


def make(tables: GlueTables, name: str = "t") -> None:
    properties = {"format-version": "2", "write.merge.mode": "merge-on-read"}
    tables.library().create_table(("db", name), SCHEMA, properties=properties)
    if name == "t":
        for each in range(3):
            append(tables, each)
        first, last = snapshots(tables)[0], snapshots(tables)[-1]
        changes = table(tables).manage_snapshots()
        changes.create_tag(first, "old").create_branch(last, "audit").commit()
        append(tables, 7, "audit")
        stage(tables, 9)


@pytest.fixture
def proxy(tables: GlueTables) -> Iterator[Proxy]:
    with proxy_before(tables.store.endpoint) as running:
        yield running


def done(tables: GlueTables, statement: Any, uri: str = "") -> JobResult:
    """The job of an operator."""
    if isinstance(statement, CompactSpec):
        place = tables.spec(uri)
        result = compaction_runs.compact(tables.open(uri), place, statement, name=NAME)
    else:
        request = JobRequest("care-1", NAME, tables.spec(uri), statement)
        result = run(request, None, tables.keys)
    assert result.error is None, result.error
    return result


def refs(tables: GlueTables) -> set[str]:
    return set(references(tables))


def files(tables: GlueTables) -> int:
    return sum(1 for _ in table(tables).scan().plan_files())


def unneeded(tables: GlueTables) -> set[str]:
    return stored(tables) - needed(tables)


def lose(tables: GlueTables) -> None:
    """A file that nothing needs; all are old."""
    (root(tables) / LOST).write_bytes(b"lost")
    for each in root(tables).rglob("*"):
        os.utime(each, (time.time() - 3 * 86_400,) * 2)


def mark(tables: GlueTables) -> None:
    """Two files of position deletes for the file of the id 0."""
    paths = [each.file.file_path for each in table(tables).scan("id = 0").plan_files()]
    (path,) = paths
    for _ in range(2):
        iceberg_tables.IcebergTable(tables.library(), ("db", "t")).mark_positions({path: [0]})


def first(tables: GlueTables) -> int:
    return snapshots(tables)[0]


# The statement, what is looked at, and what it is afterwards.
Case = tuple[Callable[[GlueTables], Any], Callable[[GlueTables], Any], Any]
ALL = {"main", "old", "audit"}
CHANGES: dict[str, Case] = {
    "create_tag": (lambda _: CreateTagSpec("daily"), refs, {*ALL, "daily"}),
    "delete_tag": (lambda _: DeleteTagSpec("old"), refs, ALL - {"old"}),
    "create_branch": (lambda _: CreateBranchSpec("new", retention="9 d"), refs, {*ALL, "new"}),
    "delete_branch": (lambda _: DeleteBranchSpec("audit"), refs, ALL - {"audit"}),
    "fast_forward": (lambda _: FastForwardSpec("audit"), ids, [0, 1, 2, 7]),
    "rollback": (lambda tables: RollbackSpec(first(tables), force=True), ids, [0]),
    "set_current": (
        lambda tables: SetCurrentSnapshotSpec(snapshots(tables)[3], force=True),
        ids,
        [0, 1, 2, 7],
    ),
    "cherry_pick": (lambda tables: CherryPickSpec(snapshots(tables)[4]), ids, [0, 1, 2, 9]),
    "expire_snapshots": (lambda _: NOW, lambda tables: len(snapshots(tables)), 3),
    "compact": (lambda _: CompactSpec(mode="full"), files, 1),
    "manifests": (
        lambda _: CompactSpec(manifests="only"),
        lambda tables: len(table(tables).current_snapshot().manifests(table(tables).io)),
        1,
    ),
}


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("fault", [None, "lose the answer"])
@pytest.mark.parametrize("change", CHANGES)
def test_each_change(tables: GlueTables, proxy: Proxy, change: str, fault: Any) -> None:
    statement, seen, expected = CHANGES[change]
    plan = proxy.add("POST", "UpdateTable", fault) if fault else None
    kept = stored(tables)

    done(tables, statement(tables), proxy.endpoint)

    assert plan is None or plan.seen == 1
    assert seen(tables) == expected
    assert needed(tables) <= stored(tables)
    if change == "expire_snapshots":
        assert refs(tables) == ALL
        assert ids(tables) == [0, 1, 2]
        assert unneeded(tables) == set()
        # That of the staged snapshot.
        assert sum(each.endswith(".parquet") for each in kept - stored(tables)) == 1
    else:
        assert kept <= stored(tables)


def test_position_deletes_are_put_together(tables: GlueTables) -> None:
    mark(tables)

    done(tables, CompactSpec(mode="deletes", min_files=2))

    assert ids(tables) == [1, 2]
    (marked,) = (each for each in table(tables).scan().plan_files() if each.delete_files)
    assert len(marked.delete_files) == 1


def test_orphans_go(tables: GlueTables) -> None:
    lose(tables)
    before = needed(tables)

    report = done(tables, RemoveOrphanFilesSpec()).maintenance

    assert report is not None
    assert report.files == (LOST,)
    assert stored(tables) == before


def test_a_tag_that_is_made_meanwhile_stays(tables: GlueTables) -> None:
    """On Glue, the client decides: the expiry begins again."""
    connector, second = tables.open(), snapshots(tables)[1]
    asked = []

    def tagged(request: Any) -> None:
        asked.append(request)
        if len(asked) == 1:
            table(tables).manage_snapshots().create_tag(second, "meanwhile").commit()

    before_commits(connector, tagged)

    care(connector).expire_snapshots(NAME, NOW, dry_run=False)

    assert len(asked) == 2
    assert refs(tables) == {*ALL, "meanwhile"}
    assert second in snapshots(tables)
    assert unneeded(tables) == set()


def test_the_job_of_care_for_many_tables(spark: SparkSession, tables: GlueTables) -> None:
    """Of one table all actions; another one does not exist."""
    lose(tables)
    statements = [CompactSpec(mode="full"), NOW, RemoveOrphanFilesSpec("1 d")]
    requests = [
        JobRequest(f"care-{number}", NAME, tables.spec(), each)
        for number, each in enumerate(statements)
    ]
    requests.insert(1, replace(requests[0], operation_id="gone", target=TableName("db", "gone")))
    batch = JobBatch("care", tuple(requests), on_failure="continue")

    results = run_all(batch, spark, tables.keys)

    errors = [each.error.code if each.error else None for _, each in sorted(results.items())]
    assert errors == [None, "TABLE_NOT_FOUND", None, None]
    assert (files(tables), ids(tables)) == (1, [0, 1, 2])
    assert unneeded(tables) == set()
    rows = pa.table({"id": [3]}, schema=SCHEMA)
    table(tables).append(rows)
    assert ids(tables) == [0, 1, 2, 3]


def test_a_table_is_dropped_and_its_files_stay(tables: GlueTables) -> None:
    folder = root(tables)
    files_before = set(folder.rglob("*"))
    assert done(tables, DropTableSpec()).dropped
    assert not tables.library().table_exists(("db", "t"))
    assert set(folder.rglob("*")) == files_before
    request = JobRequest("purge", NAME, tables.spec(), DropTableSpec(purge=True))
    refused = run(request, None, tables.keys).error
    assert refused is not None
    assert refused.code == "NOT_SUPPORTED"
