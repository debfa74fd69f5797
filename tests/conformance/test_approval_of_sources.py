"""Approved work whose sources, or whose base, are others by the time that it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.alter_table import (
    AddPartitionField,
    AlterTableSpec,
    SetDefault,
    SetNullable,
    WidenColumn,
)
from spark_jobs.contract.cdc import CdcSource, OperationValues, SequenceColumn
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
)
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, MergeSpec
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.engine.job.table_jobs import AlterTableJob
from spark_jobs.run import run
from tests.conformance.behaviour import delete_from, insert_all, matched, not_matched, update
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.iceberg_files import catalog_spec

pytestmark = pytest.mark.slow
SOURCE = TableName("db", "source")
COLUMNS = (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"))
MERGE = MergeSpec("s", "t.id = s.id", (matched(update(v="s.v")),), "t", "s")
_EVENTS = CdcSource(
    "s",
    "events",
    ("id",),
    OperationValues(("c",), ("u",), ("d",)),
    (SequenceColumn("n", "n"),),
)
_EVENT = "id BIGINT, k INT, v STRING, n INT, req STRING, p STRING, op STRING"


def _done(request: JobRequest, harness: Harness, operation: str, **more: Any) -> JobResult:
    asked = JobRequest.from_json(replace(request, operation_id=operation, **more).to_json())
    return run(asked, harness.spark)


def _preview(request: JobRequest, harness: Harness) -> Any:
    told = _done(request, harness, "preview", dry_run=True)
    assert (told.status, told.error) == ("dry_run", None)
    return told.ticket


def _committed(request: JobRequest, harness: Harness, operation: str) -> None:
    assert _done(request, harness, operation).status == "committed"


def _require_stale(request: JobRequest, ticket: Any, harness: Harness, *texts: str) -> None:
    """The approved task says what differs, and leaves the table as it is."""
    before = harness.state()
    failed = _done(request, harness, "real", approved=ticket)
    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("APPROVAL_STALE", False)
    for text in texts:
        assert text in failed.error.message
    after = harness.state()
    assert (after.snapshot_id, after.on_disk) == (before.snapshot_id, before.on_disk)


def _base(harness: Harness) -> JobRequest:
    return request_of(delete_from("", "id = 305"), harness)


def _filled(harness: Harness, operation: str, value: str, target: TableName = SOURCE) -> None:
    rows = SqlSource("s", f"SELECT 100L AS id, '{value}' AS v")
    request = replace(_base(harness), target=target, sources=(rows,))
    _committed(replace(request, statement=InsertIntoSpec("s")), harness, operation)


def _with_source(make_table: MakeTable, kind: str) -> Harness:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    harness.connector.metadata.create_table(SOURCE, CreateTableSpec(COLUMNS))
    _filled(harness, "fill", "first")
    return harness


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-dv", "iceberg-mor"])
def test_events_that_came_meanwhile(kind: str, make_table: MakeTable, tmp_path: Path) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "one.csv").write_text("100,1,x,100,r,a,u\n101,,,101,,,d\n700,1,x,102,r,a,c\n")
    files = FileSource("events", str(folder), "csv", schema=_EVENT)
    statement = MergeSpec(
        "s", event_on(_EVENTS, "t", "s"), event_cases(_EVENTS, "t", "s"), "t", "s"
    )
    request = replace(_base(harness), statement=statement, sources=(files, _EVENTS))
    ticket = _preview(request, harness)
    assert (ticket.inserted, ticket.updated, ticket.deleted) == (1, 1, 1)

    (folder / "two.csv").write_text("102,1,x,103,r,a,u\n")

    _require_stale(request, ticket, harness, "source events: it was 1 files", "2 files")
    later = replace(_EVENTS, keys=("id", "p"))
    cases = replace(statement, on=event_on(later, "t", "s"), cases=event_cases(later, "t", "s"))
    other = replace(request, statement=cases, sources=(files, later))
    _require_stale(other, ticket, harness, "other than in the dry run: sources, statement")
    done = _done(request, harness, "real", approved=_preview(request, harness))
    assert (done.status, done.metrics.updated) == ("committed", 2)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_events_in_a_table_that_came_meanwhile(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    columns = tuple(ColumnSpec(*each.split()) for each in _EVENT.split(", "))
    harness.connector.metadata.create_table(SOURCE, CreateTableSpec(columns))
    insert = replace(_base(harness), target=SOURCE, statement=InsertIntoSpec("s"))

    def land(operation: str, id_: int) -> None:
        rows = SqlSource("s", f"SELECT {id_}L, 1, 'x', {id_}, 'r', 'a', 'u'")
        _committed(replace(insert, sources=(rows,)), harness, operation)

    land("one", 100)
    statement = MergeSpec(
        "s", event_on(_EVENTS, "t", "s"), event_cases(_EVENTS, "t", "s"), "t", "s"
    )
    sources = (TableSource("events", SOURCE), _EVENTS)
    request = replace(_base(harness), statement=statement, sources=sources)
    ticket = _preview(request, harness)

    land("two", 101)

    _require_stale(request, ticket, harness, "source events: it was snapshot")


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", ["append-cow", "primary-key", "iceberg-mor"])
def test_a_base_that_has_expired(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(delete_from("", "id = 100"), harness)
    ticket = _preview(request, harness)
    for number, id_ in enumerate((140, 240)):
        others = request_of(delete_from("", f"id = {id_}"), harness)
        _committed(others, harness, f"others-{number}")
    maintenance = harness.open().maintenance
    assert maintenance is not None
    spec = ExpireSnapshotsSpec(retain_max=1, retain_min=1, older_than="0 s")
    assert maintenance.expire_snapshots(TARGET, spec, dry_run=False).snapshots > 1

    _require_stale(request, ticket, harness, "is not in the history of db.target any more")


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
@pytest.mark.parametrize("what", ["tag", "name", "query"])
def test_a_tag_that_was_moved(what: str, kind: str, make_table: MakeTable) -> None:
    harness = _with_source(make_table, kind)
    maintenance = harness.open().maintenance
    assert maintenance is not None
    maintenance.create_tag(SOURCE, CreateTagSpec("daily"))
    at = TableVersion(version="daily") if what == "name" else TableVersion(tag="daily")
    source = TableSource("s", SOURCE, at)
    sources: tuple[Any, ...] = (source,)
    if what == "query":
        sources = (replace(source, name="below"), SqlSource("s", "SELECT id, v FROM below"))
    request = replace(_base(harness), statement=MERGE, sources=sources)
    _filled(harness, "more", "other")
    # The table has moved on, its tag has not.
    assert _preview(request, harness).updated == 1
    ticket = _preview(request, harness)

    maintenance.delete_tag(SOURCE, DeleteTagSpec("daily"), dry_run=False)
    gone = _done(request, harness, "gone", approved=ticket)
    maintenance.create_tag(SOURCE, CreateTagSpec("daily"))

    assert gone.error is not None
    assert "daily" in gone.error.message
    _require_stale(request, ticket, harness, f"source {sources[0].name}: it was snapshot")


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_a_branch_that_was_written_or_made_again(kind: str, make_table: MakeTable) -> None:
    harness = _with_source(make_table, kind)
    branch = TableName("db", "source$branch_b")
    branches = harness.open().branches
    assert branches is not None
    branches.create_branch(SOURCE, CreateBranchSpec("b"))
    request = replace(_base(harness), statement=MERGE, sources=(TableSource("s", branch),))
    ticket = _preview(request, harness)
    _filled(harness, "of-main", "other")
    assert _done(request, harness, "again", approved=ticket).status == "committed"
    ticket = _preview(replace(request, statement=replace(MERGE, cases=_ALL)), harness)

    _filled(harness, "of-the-branch", "other", branch)

    request = replace(request, statement=replace(MERGE, cases=_ALL))
    _require_stale(request, ticket, harness, "source s: it was snapshot")


_ALL = (matched(update(v="concat(s.v, 'x')")),)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("connector", ["paimon", "iceberg"])
def test_a_table_of_another_catalog(connector: str, make_table: MakeTable, tmp_path: Path) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)

    def lake(name: str) -> CatalogSpec:
        folder = tmp_path / name
        folder.mkdir()
        if connector == "paimon":
            return CatalogSpec("paimon", str(folder))
        spec = catalog_spec(folder)
        return replace(spec, options={**spec.options, "init_catalog_tables": "true"})

    def fill(catalog: CatalogSpec, operation: str, value: str = "other") -> None:
        rows = SqlSource("s", f"SELECT 100L AS id, '{value}' AS v")
        request = replace(_base(harness), target=SOURCE, catalog=catalog, sources=(rows,))
        asked = replace(request, operation_id=operation, statement=InsertIntoSpec("s"))
        assert run(asked, harness.spark).status == "committed"

    first, second = lake("first"), lake("second")
    for each in (first, second):
        open_connector(each, {}).metadata.create_table(SOURCE, CreateTableSpec(COLUMNS))
        fill(each, "fill")
    source = TableSource("s", SOURCE, connection="lake", catalog=first)
    request = replace(_base(harness), statement=MERGE, sources=(source,))
    ticket = _preview(request, harness)

    # The connection has been edited.
    elsewhere = replace(request, sources=(replace(source, catalog=second),))
    _require_stale(elsewhere, ticket, harness, "other than in the dry run: sources")
    _require_stale(
        replace(request, sources=(replace(source, connection="others"),)),
        ticket,
        harness,
        "other than in the dry run: sources",
    )
    fill(first, "more")
    _require_stale(request, ticket, harness, "source s: it was snapshot")


@pytest.mark.by_turns(3)
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("append-cow", SetDefault("v", "'other'")),
        ("append-cow", WidenColumn("n", "BIGINT")),
        ("append-cow", SetNullable("req", nullable=True)),
        ("iceberg-mor", WidenColumn("n", "BIGINT")),
        ("iceberg-mor", AddPartitionField("v")),
    ],
    ids=str,
)
def test_a_target_whose_columns_or_partitions_changed(
    kind: str, change: Any, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    rows = SqlSource("s", "SELECT 700L AS id, 'r' AS req, 'a' AS p")
    insert = InsertIntoSpec("s", columns=("id", "req", "p"))
    request = replace(_base(harness), statement=insert, sources=(rows,))
    ticket = _preview(request, harness)
    alter = replace(request, operation_id="alter", sources=(), statement=AlterTableSpec((change,)))
    assert AlterTableJob(alter, harness.spark, harness.open()).run().status == "committed"

    _require_stale(request, ticket, harness, "the columns or the partitions of db.target")


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_a_query_over_a_table_that_has_other_rows(kind: str, make_table: MakeTable) -> None:
    harness = _with_source(make_table, kind)
    query = SqlSource("s", "SELECT id, max(v) AS v FROM below GROUP BY id")
    request = replace(
        _base(harness), statement=MERGE, sources=(TableSource("below", SOURCE), query)
    )
    ticket = _preview(request, harness)

    _filled(harness, "more", "zzz")

    # It still has one row.
    _require_stale(request, ticket, harness, "source below: it was snapshot")


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_a_source_that_is_the_target_itself(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    own = TableSource("others", TARGET)
    query = SqlSource("s", "SELECT * FROM others WHERE id = 140")
    merge = replace(MERGE, on="t.id = s.id - 40", cases=(*MERGE.cases, not_matched(insert_all())))
    request = replace(_base(harness), statement=merge, sources=(own, query))
    ticket = _preview(request, harness)

    others = request_of(delete_from("", "id = 140"), harness)
    _committed(others, harness, "others")

    _require_stale(request, ticket, harness)
