"""What was approved is done, or nothing: each way in which it can become something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.alter_table import AddColumn, AlterTableSpec, DropColumn, RenameColumn
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.maintenance import RollbackSpec
from spark_jobs.contract.request import FileSource, JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.job.table_jobs import AlterTableJob
from tests.conformance.behaviour import (
    Behaviour,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update,
    update_all,
    update_set,
)
from tests.conformance.check import readable, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL

_ALL = "s(id, k, v, n, req, p)"
_ROWS = f"VALUES (100, 1, 'x', 9, 'r', 'a'), (500, 1, 'x', 1, 'r', 'a') AS {_ALL}"
_MERGE = Behaviour("merge", _ROWS, (matched(update(v="s.v")), not_matched(insert_all())))
_OTHERS = delete_from("others", "id = 120")
_SAME_FILE = delete_from("same file", "id = 100")
KINDS = ("append-cow", "append-dv", "primary-key", "iceberg-cow", "iceberg-mor")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "append-dv",
        *(pytest.param(each, marks=pytest.mark.by_turns(2)) for each in KINDS if each[-1] == "w"),
        *(
            pytest.param(each, marks=pytest.mark.by_turns(3))
            for each in ("primary-key", "iceberg-mor")
        ),
    ],
)
def test_the_approved_work_is_done_beside_commits_that_it_does_not_read(
    kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(_MERGE, harness)
    preview = _preview(request, harness)
    _commit(_OTHERS, harness, "others")
    expected = len(harness.state().rows) + preview.metrics.inserted

    done = _approved(request, preview, harness)

    assert done.error is None
    assert (done.status, done.base_snapshot_id) == ("committed", preview.base_snapshot_id)
    counted = (done.metrics.inserted, done.metrics.updated, done.metrics.deleted)
    assert counted == (1, 1, 0)
    assert len(harness.state().rows) == expected
    # A retry finds the commit, whatever has happened since.
    retry = replace(request, origin=replace(request.origin, try_number=2))
    again = _approved(retry, preview, harness)
    assert (again.error, again.new_snapshot_id) == (None, done.new_snapshot_id)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["iceberg-mor", "append-dv"])
def test_a_commit_on_what_it_reads_makes_it_stale(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(_MERGE, harness)
    preview = _preview(request, harness)
    _commit(_SAME_FILE, harness, "others")
    before = harness.state()

    failed = _approved(request, preview, harness)

    _require_stale(failed, "others have changed")
    assert readable(harness.state().rows) == readable(before.rows)
    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["iceberg-mor", "append-dv"])
def test_a_table_that_was_made_anew_is_another_one(kind: str, make_table: MakeTable) -> None:
    request = request_of(_MERGE, make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True))
    preview = _preview(request, make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True))
    assert preview.ticket is not None
    # Its snapshots have the same ids.
    anew = replace(preview.ticket, base_digest="0" * 64)
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    before = harness.state()

    failed = _approved(request, replace(preview, ticket=anew), harness)

    _require_stale(failed, "is not in the history")
    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
def test_what_the_request_says_may_not_change(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(_MERGE, harness)
    preview = _preview(request, harness)
    before = harness.state()
    merge = request.statement

    _require_stale(
        _approved(replace(request, statement=replace(merge, on="t.k = s.k")), preview, harness),
        "statement",
    )
    _require_stale(
        _approved(replace(request, guards=Guards(max_deleted_rows=Limit(3))), preview, harness),
        "guards",
    )
    others = replace(request.sources[0], query=f"SELECT * FROM {_ROWS} WHERE id > 100")
    _require_stale(
        _approved(replace(request, sources=(others, *request.sources[1:])), preview, harness),
        "sources",
    )
    options = replace(request.options, isolation="snapshot")
    _require_stale(_approved(replace(request, options=options), preview, harness), "options")
    elsewhere = replace(request, target=TableName("db", "elsewhere"))
    _require_stale(_approved(elsewhere, preview, harness), "the ticket is for db.target")
    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
def test_a_source_may_not_change(make_table: MakeTable, tmp_path: Path) -> None:
    harness = make_table("iceberg-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    folder = tmp_path / "files"
    folder.mkdir()
    file = folder / "one.csv"
    file.write_text("700,1,x,1,r,a\n")
    source = FileSource(
        "s", str(folder), "csv", schema="id BIGINT, k INT, v STRING, n INT, req STRING, p STRING"
    )
    insert = replace(
        request_of(Behaviour("", _ROWS, (), statement=InsertIntoSpec("s")), harness),
        sources=(source,),
    )
    preview = _preview(insert, harness)
    rows = readable(harness.state().rows)

    file.write_text("700,1,y,1,r,a\n701,1,x,1,r,a\n")
    _require_stale(_approved(insert, preview, harness), "source s: it was 1 files of 14 bytes")
    preview = _preview(insert, harness)
    (folder / "two.csv").write_text("702,1,x,1,r,a\n")
    _require_stale(_approved(insert, preview, harness), "2 files")
    assert readable(harness.state().rows) == rows
    assert _approved(insert, _preview(insert, harness), harness).metrics.inserted == 3


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("change", ["as long", "renamed", "removed"])
def test_files_may_not_be_others_in_any_way(
    change: str, make_table: MakeTable, tmp_path: Path
) -> None:
    harness = make_table("append-dv", ORDERS_WITHOUT_NULL, partitioned=True)
    folder = tmp_path / "files"
    folder.mkdir()
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    for name in ("one", "two"):
        rows = pa.Table.from_pylist([{"id": 100, "v": name}], schema=schema)
        pq.write_table(rows.slice(0, name == "one"), folder / f"{name}.parquet")
    file = folder / "one.parquet"
    source = FileSource("s", str(folder), "parquet")
    statement = MergeSpec("s", "t.id = s.id", (matched(update(v="s.v")),), "t", "s")
    merge = replace(request_of(_MERGE, harness), sources=(source,), statement=statement)
    preview, size = _preview(merge, harness), file.stat().st_size
    before = harness.state()
    if change == "as long":
        pq.write_table(pa.Table.from_pylist([{"id": 100, "v": "uno"}], schema=schema), file)
        assert file.stat().st_size == size
    elif change == "renamed":
        file.rename(folder / "other.parquet")
    else:
        (folder / "two.parquet").unlink()

    _require_stale(_approved(merge, preview, harness), "source s")

    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_a_source_that_was_made_anew_with_the_same_rows_is_another_one(
    kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    source, base = TableName("db", "source"), request_of(_MERGE, harness)
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"))
    rows = SqlSource("s", "SELECT 100L AS id, 'right' AS v")
    fill = replace(base, target=source, sources=(rows,), statement=InsertIntoSpec("s"))

    def made(operation: str) -> None:
        harness.open().metadata.create_table(source, CreateTableSpec(columns))
        assert _job(replace(fill, operation_id=operation), harness).status == "committed"

    made("first")
    statement = MergeSpec("s", "t.id = s.id", (matched(update(v="s.v")),), "t", "s")
    merge = replace(base, sources=(TableSource("s", source),), statement=statement)
    preview, before = _preview(merge, harness), harness.state()
    alterations = harness.open().alterations
    assert alterations is not None
    assert alterations.drop_table(source, DropTableSpec())
    made("second")

    _require_stale(_approved(merge, preview, harness), "source s")

    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "primary-key", "iceberg-mor"])
def test_a_target_that_was_rolled_back_is_another_one(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request, first = request_of(_MERGE, harness), harness.state().snapshot_id
    assert first is not None
    _commit(_OTHERS, harness, "others")
    preview = _preview(request, harness)
    roll_back = RollbackSpec(first, force=True)
    maintenance = harness.open().maintenance
    assert maintenance is not None
    maintenance.roll_back(TARGET, roll_back, dag_id="", dry_run=False)
    before = harness.state()

    _require_stale(_approved(request, preview, harness))

    assert readable(harness.state().rows) == readable(before.rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_columns_of_a_source_may_not_change(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    source, base = TableName("db", "source"), request_of(_MERGE, harness)
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"), ColumnSpec("w", "STRING"))
    harness.connector.metadata.create_table(source, CreateTableSpec(columns))
    rows = SqlSource("s", "SELECT 100L AS id, 'right' AS v, 'wrong' AS w")
    fill = replace(base, operation_id="fill", target=source, sources=(rows,))
    assert _job(replace(fill, statement=InsertIntoSpec("s")), harness).status == "committed"
    statement = MergeSpec("s", "t.id = s.id", (matched(update(v="s.v")),), "t", "s")
    merge = replace(base, sources=(TableSource("s", source),), statement=statement)
    preview = _preview(merge, harness)

    # No snapshot tells of it.
    renamed = AlterTableSpec((RenameColumn("v", "x"), RenameColumn("w", "v")))
    _alter(replace(base, target=source, sources=(), statement=renamed), harness)

    _require_stale(_approved(merge, preview, harness), "source s", "with other columns")
    assert "wrong" not in [row["v"] for row in harness.state().rows]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_a_column_that_was_dropped_and_added_again_is_another_one(
    kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(update_set("", {"k": "n"}, "id = 105"), harness)
    preview = _preview(request, harness)
    for changes in ((DropColumn("n"),), (AddColumn("n", "INT", after="v"),)):
        _alter(replace(request, sources=(), statement=AlterTableSpec(changes)), harness)

    _require_stale(_approved(request, preview, harness), "columns or the partitions of db.target")


@pytest.mark.slow
def test_a_stale_run_that_changes_no_row_adds_no_column(make_table: MakeTable) -> None:
    harness = make_table("iceberg-mor", ORDERS_WITHOUT_NULL, partitioned=True)
    none = SqlSource("s", "SELECT -1L AS id, 'new' AS v, 1 AS added")
    statement = MergeSpec("s", "t.id = s.id", (matched(update_all()),), "t", "s")
    base = replace(request_of(_MERGE, harness), sources=(none,))
    merge = replace(base, statement=replace(statement, schema_evolution=True))
    preview = _preview(merge, harness)
    assert len(preview.schema_changes) == 1
    _commit(_OTHERS, harness, "others")

    _require_stale(_approved(merge, preview, harness), "nothing is to be done since snapshot")
    assert "added" not in harness.state().rows[0]


@pytest.mark.slow
def test_files_that_are_no_source_cannot_be_approved(make_table: MakeTable, tmp_path: Path) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"id": [100], "v": ["right"]}), path)
    statement = MergeSpec("s", "t.id = s.id", (matched(update(v="s.v")),), "t", "s")
    source = SqlSource("s", f"SELECT * FROM parquet.`{path}`")
    merge = replace(request_of(_MERGE, harness), sources=(source,), statement=statement)
    preview = _preview(merge, harness)
    before = harness.state()

    failed = _approved(merge, preview, harness)

    assert failed.error is not None
    assert failed.error.code == "NOT_SUPPORTED"
    assert "source s" in failed.error.message
    assert harness.state().snapshot_id == before.snapshot_id


@pytest.mark.slow
def test_other_counts_are_other_work(make_table: MakeTable) -> None:
    harness = make_table("iceberg-mor", ORDERS_WITHOUT_NULL, partitioned=True)
    overwrite = Behaviour("", _ROWS, (), statement=InsertOverwriteSpec("s", "dynamic"))
    request = request_of(overwrite, harness)
    preview = _preview(request, harness)
    assert preview.ticket is not None
    told = replace(preview, ticket=replace(preview.ticket, deleted=preview.ticket.deleted + 1))
    before = harness.state()

    _require_stale(_approved(request, told, harness), "rows would have been deleted")

    assert harness.state().on_disk == before.on_disk


def _preview(request: JobRequest, harness: Harness) -> JobResult:
    result = _job(replace(request, operation_id="preview", dry_run=True), harness)
    assert result.error is None
    assert result.ticket is not None
    return result


def _approved(request: JobRequest, preview: JobResult, harness: Harness) -> JobResult:
    return _job(replace(request, operation_id="real", approved=preview.ticket), harness)


def _commit(behaviour: Behaviour, harness: Harness, operation: str) -> None:
    result = _job(replace(request_of(behaviour, harness), operation_id=operation), harness)
    assert result.status == "committed"


def _alter(request: JobRequest, harness: Harness) -> None:
    job = AlterTableJob(replace(request, operation_id=uuid4().hex), harness.spark, harness.open())
    assert job.run().status == "committed"


def _job(request: JobRequest, harness: Harness) -> JobResult:
    request = JobRequest.from_json(request.to_json())
    return JobResult.from_json(Job(request, harness.spark, harness.open()).run().to_json())


def _require_stale(result: JobResult, *texts: Any) -> None:
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("APPROVAL_STALE", False)
    for text in texts:
        assert text in result.error.message
    assert result.target in (str(TARGET), "db.elsewhere")
