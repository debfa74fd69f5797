"""The changes of a table since a task's last commit: each is applied once, or the gap is named."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, Origin, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.contract.table_versions import ChangeRange, TableVersion
from spark_jobs.run import run
from tests.engine.changed_tables import NAME, Change, ChangedTable, applied, plain

DOCS = Path(__file__).parents[2] / "docs" / "sources.md"
LOG = TableName("db", "log")
COLUMNS = ("id BIGINT", "v STRING", "f DOUBLE", "kind STRING", "snapshot BIGINT")
APPEND = "INSERT INTO db.log SELECT id, v, f, _change_type AS kind, _snapshot_id AS snapshot FROM s"


@dataclass
class Task:
    """Appends the changes of ``db.t`` to ``db.log``."""

    table: ChangedTable
    asked: ChangeRange
    name: str = "load"

    def make(self) -> None:
        self.table.make()
        columns = tuple(ColumnSpec(*each.split()) for each in COLUMNS)
        self.table.connector.metadata.create_table(LOG, CreateTableSpec(columns))

    def request(self, **more: Any) -> JobRequest:
        parsed = parse_statement(APPEND, ["s"])
        source = TableSource("s", NAME, changes=self.asked)
        made = JobRequest(
            *(str(uuid.uuid4()), parsed.target, self.table.catalog, parsed.statement),
            sources=(source, *parsed.sources),
            origin=Origin("d", str(uuid.uuid4()), self.name),
        )
        return replace(made, **more)

    def run(self, **more: Any) -> JobResult:
        return run(self.request(**more), self.table.spark)

    def done(self, **more: Any) -> JobResult:
        result = self.run(**more)
        assert result.error is None, result.error
        return result

    def log(self) -> list[Change]:
        """What is in ``db.log``."""
        connector = self.table.connector
        table = connector.metadata.load_table(LOG)
        files = connector.metadata.plan_files(table)
        rows = connector.scan.read(self.table.spark, table, files, table.column_names).collect()
        return [Change(plain(row[:3]), row[3], row[4]) for row in rows]

    def rows(self) -> Counter[Any]:
        """The rows of ``db.t`` without the columns that the log does not have."""
        found: Counter[Any] = Counter()
        for row, count in self.table.rows(self.table.ids()[-1]).items():
            found[row[:3]] += count
        return found


def task(spark: SparkSession, folder: Path, kind: str, asked: ChangeRange | None = None) -> Task:
    made = Task(ChangedTable(spark, folder, kind), asked or ChangeRange("all"))
    made.make()
    made.table.do("INSERT INTO db.t VALUES (1L, 'x', 0.0D, NULL, 0), (2L, 'y', NULL, NULL, 1)")
    return made


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["vectors", "iceberg-cow"])
def test_a_preview_of_another_task_is_approved_in_each_run(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Its dry run goes by the mark of the task that it foretells, and moves none."""
    loaded = task(spark, tmp_path, kind)
    foretold = Origin("d", "preview", "preview", dry_run_of=loaded.name)
    for number, news in enumerate((2, 1, 1)):
        preview = loaded.done(dry_run=True, origin=foretold)
        done = loaded.done(approved=preview.ticket)

        assert preview.metrics.inserted == done.metrics.inserted == news
        loaded.table.do(f"INSERT INTO db.t VALUES ({number + 5}L, 'z', 1.5D, NULL, 0)")
    assert loaded.done(dry_run=True, origin=replace(foretold, dry_run_of="")).metrics.inserted == 5


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["vectors", "iceberg-cow"])
def test_other_changes_than_the_approved_ones_are_stale(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    loaded = task(spark, tmp_path, kind)
    preview = loaded.done(dry_run=True)
    loaded.table.do("INSERT INTO db.t VALUES (5L, 'z', 1.5D, NULL, 0)")
    more = loaded.run(approved=preview.ticket)
    preview = loaded.done(dry_run=True)
    loaded.done()
    applied_already = loaded.run(approved=preview.ticket)

    for stale in (more, applied_already):
        assert stale.error is not None
        assert stale.error.code == "APPROVAL_STALE"
    assert len(loaded.log()) == 3


@pytest.mark.slow
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", ["vectors", "iceberg-cow", "iceberg-mor"])
def test_each_change_is_applied_once(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    loaded = task(spark, tmp_path, kind)
    do = loaded.table.do
    first = loaded.done()
    assert (first.status, len(loaded.log())) == ("committed", 2)
    assert loaded.done().status == "unchanged"

    do("DELETE FROM db.t WHERE id = 1")
    do("INSERT INTO db.t VALUES (3L, 'z', 1.5D, NULL, 0)")
    second = loaded.request()
    retry = replace(second, origin=replace(second.origin, try_number=2))
    for result in (run(second, spark), run(retry, spark)):
        assert result.error is None, result.error
    assert loaded.done().status == "unchanged"
    do("UPDATE db.t SET v = 'u' WHERE id = 2")
    loaded.done(dry_run=True)
    loaded.done()

    changes = loaded.log()
    assert applied(Counter(), changes) == loaded.rows()
    told = Counter((each.kind, each.row[0]) for each in changes)
    expected = [("insert", "1"), ("insert", "2"), ("delete", "1"), ("insert", "3")]
    assert told == Counter([*expected, ("delete", "2"), ("insert", "2")])
    assert {each.snapshot for each in changes} <= {*loaded.table.ids()}
    last = loaded.table.connector.writes.history(
        loaded.table.connector.metadata.load_table(LOG)
    ).entries
    newest = next(iter(last))
    assert json.loads(newest.properties["merge.sources"]) == {"db.t": loaded.table.ids()[-1]}


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append", "iceberg-cow"])
def test_where_the_first_run_begins(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    now = task(spark, tmp_path, kind, ChangeRange("now"))
    begun = now.table.ids()[-1]
    assert now.done().status == "committed"
    assert now.log() == []
    now.table.do("INSERT INTO db.t VALUES (3L, 'z', 1.5D, NULL, 0)")
    now.done()
    assert [(each.kind, each.row[0]) for each in now.log()] == [("insert", "3")]

    at = ChangeRange("at", TableVersion(snapshot=begun))
    other = replace(now, asked=at, name="another")
    other.done()
    assert [each.row[0] for each in other.log()] == ["3", "3"]
    gone = replace(now, asked=ChangeRange("at", TableVersion(snapshot=99)), name="third")
    failed = gone.run()
    assert failed.error is not None
    assert failed.error.code == "SNAPSHOT_NOT_FOUND"


def expired(loaded: Task) -> None:
    for number in range(2):
        loaded.table.do(f"INSERT INTO db.t VALUES (9L, 'n{number}', NULL, NULL, 0)")
    loaded.table.do(ExpireSnapshotsSpec(older_than="0 s", retain_min=1, retain_max=1))


def rolled_back(loaded: Task) -> None:
    loaded.table.do(RollbackSpec(loaded.table.ids()[0], force=True))
    loaded.table.do("INSERT INTO db.t VALUES (9L, 'n', NULL, NULL, 0)")


def made_anew(loaded: Task) -> None:
    """By an equal history: the same numbers of snapshots, of other ones."""
    loaded.table.do(DropTableSpec())
    loaded.table.connector.metadata.create_table(NAME, loaded.table.definition)
    for number in (7, 8, 9):
        loaded.table.do(f"INSERT INTO db.t VALUES ({number}L, 'n', NULL, NULL, 0)")


@pytest.mark.slow
@pytest.mark.by_turns(6)
@pytest.mark.parametrize(
    ("kind", "gap"),
    [*itertools.product(["append", "iceberg-cow"], [expired, rolled_back, made_anew])],
)
def test_gaps(spark: SparkSession, tmp_path: Path, kind: str, gap: Any) -> None:
    loaded = task(spark, tmp_path, kind)
    loaded.table.do("INSERT INTO db.t VALUES (3L, 'z', 1.5D, NULL, 0)")
    loaded.done()
    before = loaded.log()
    gap(loaded)

    failed = loaded.run()
    assert failed.error is not None
    assert failed.error.code == "SNAPSHOT_NOT_FOUND"
    assert "source s" in failed.error.message
    assert failed.error.remedy
    assert loaded.log() == before

    full = replace(loaded, asked=ChangeRange("all", on_gap="full"))
    full.done()
    after = [each for each in full.log() if each not in before]
    assert {each.kind for each in after} <= {"insert"}
    assert len(full.log()) == len(before) + sum(loaded.rows().values())
    assert loaded.done().status == "unchanged"


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["vectors", "iceberg-cow"])
def test_the_example_of_the_documentation(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (text,) = re.findall(r"```sql\n(MERGE INTO shop\.silver.*?)```", DOCS.read_text(), re.DOTALL)
    loaded = task(spark, tmp_path, kind, ChangeRange("all", net=True))
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"))
    silver = TableName("db", "silver")
    loaded.table.connector.metadata.create_table(silver, CreateTableSpec(columns))
    parsed = parse_statement(text.replace("shop.", "db."), ["changes"])
    source = TableSource("changes", NAME, changes=loaded.asked)
    steps = (
        "UPDATE db.t SET v = 'u' WHERE id = 1",
        "DELETE FROM db.t WHERE id = 2",
        "INSERT INTO db.t VALUES (3L, 'z', 1.5D, NULL, 0)",
        "UPDATE db.t SET v = 'w' WHERE id IN (1, 3)",
    )
    for number, step in enumerate(("", *steps)):
        if step:
            loaded.table.do(step)
        if number == 2:
            continue  # two steps in one run
        request = JobRequest(
            *(str(uuid.uuid4()), silver, loaded.table.catalog, parsed.statement),
            sources=(source, *parsed.sources),
            origin=Origin("d", str(uuid.uuid4()), "silver"),
        )
        result = run(request, spark)
        assert result.error is None, result.error
        connector = loaded.table.connector
        table = connector.metadata.load_table(silver)
        files = connector.metadata.plan_files(table)
        rows = connector.scan.read(spark, table, files, ("id", "v")).collect()
        found = sorted(plain(row[:2]) for row in rows)
        assert found == sorted(row[:2] for row in loaded.rows())
