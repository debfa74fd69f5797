"""Change events in runs: files that come once, tries that are killed, tables that order rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.cdc import CdcSource, OperationValues
from spark_jobs.contract.deduplication import ALL_ROWS
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import FileSource, JobRequest, Origin, TableName, TableSource
from spark_jobs.contract.statements import CreateTableSpec, MergeSpec
from spark_jobs.contract.table_versions import CHANGE_TYPE, SNAPSHOT_ID, ChangeRange
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.merge_run import MergeRun
from spark_jobs.run import run
from tests.conformance.harness import TARGET, Harness
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.engine.cdc_logs import Event, Manner, batches, found, random_log, replayed, run_in
from tests.engine.changed_tables import COLUMNS, NAME, ChangedTable
from tests.support.table_kinds import PRIMARY_KEY

pytestmark = pytest.mark.slow
MANNER = Manner(soft=True, wide=False, partial=False, befores=False)
_SCHEMA = "op STRING, id BIGINT, v STRING, n INT, note STRING, e_s1 BIGINT"


class KilledError(BaseException):
    """What ends a driver at a moment."""


@dataclass
class Follower:
    """A task that follows a log by its files; each run has tries, of which some are killed."""

    harness: Harness
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    runs: int = 0

    def land(self, name: str, events: list[Event]) -> None:
        """A file of events."""
        self.folder.mkdir(exist_ok=True)
        cells = [
            (e.operation, e.key, e.row["v"], e.row["n"], e.row["note"], e.turn) for e in events
        ]
        lines = [
            ",".join("" if cell is None else f'"{cell}"' for cell in row) + "\n" for row in cells
        ]
        (self.folder / name).write_text("op,id,v,n,note,e_s1\n" + "".join(lines))

    def run(self, *, killed_before: str | None = None, operation: str | None = None) -> str:
        """A try; the status, or where it was killed."""
        self.runs += 1
        source: CdcSource = replace(MANNER.source, name="s", source=f"s{ALL_ROWS}")
        files = FileSource(
            *(f"s{ALL_ROWS}", str(self.folder), "csv"),
            options={"header": "true"},
            schema=_SCHEMA,
            new_files=NewFiles("all", max_files=2),
        )
        cases, on = event_cases(source, "t", "s"), event_on(source, "t", "s")
        request = JobRequest(
            operation or f"run-{self.runs}",
            TARGET,
            self.harness.catalog,
            MergeSpec("s", on, cases, "t", "s"),
            (files, source),
            origin=Origin("dag", f"run-{self.runs}", "follow", try_number=self.runs),
        )
        with self.monkeypatch.context() as patched:
            if killed_before is not None:
                patched.setattr(MergeRun, killed_before, _kill)
            try:
                result = Job(request, self.harness.spark, self.harness.open()).run()
            except KilledError:
                return "killed"
        assert result.error is None, result.error
        return result.status


def _kill(*_: Any, **__: Any) -> Any:
    raise KilledError


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", ["append-dv", "primary-key", "iceberg-mor"])
def test_each_file_of_events_once_whatever_is_killed(
    make_table: Callable[..., Harness],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    chance = random.Random(f"files-{kind}")
    harness = make_table(kind, MANNER.table, partitioned=False)
    task = Follower(harness, tmp_path / "landing", monkeypatch)
    log = [event for number in range(8) for event in random_log(chance, MANNER, number)]
    parts = [part for part in batches(chance, MANNER, log, 6) if part]
    for at, part in enumerate(parts):
        task.land(f"{at}.csv", part)

    assert task.run(killed_before="_materialized", operation="a") == "killed"
    assert harness.read() == []
    assert task.run(killed_before="_published", operation="a") == "killed"
    assert harness.read() == []
    done = [task.run(operation="a"), task.run(operation="a")]
    assert done == ["committed", "committed"]
    snapshot = harness.latest_snapshot()
    while task.run() != "unchanged":
        assert harness.latest_snapshot() != snapshot
        snapshot = harness.latest_snapshot()

    assert found(harness, MANNER) == replayed(log, MANNER)
    assert task.run() == "unchanged"


class _OrderedHarness(PaimonHarness):
    """Tables whose rows Paimon itself orders by the sequence of events."""

    def options(self, table: SeedTable) -> Mapping[str, str]:
        return {**super().options(table), "sequence.field": "s1"}


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("soft", [True, False])
def test_a_table_with_a_sequence_field(spark: SparkSession, tmp_path: Path, soft: bool) -> None:
    manner = replace(MANNER, soft=soft)
    harness = _OrderedHarness(spark, tmp_path, partitioned=False, kind=PRIMARY_KEY)
    harness.create(manner.table)
    assert run_in(harness, manner, random.Random(7), 25) == 25


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["vectors", "iceberg-cow"])
def test_net_changes_make_a_copy(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    bronze, silver = ChangedTable(spark, tmp_path, kind), TableName("db", "silver")
    bronze.make()
    bronze.connector.metadata.create_table(silver, CreateTableSpec(COLUMNS))
    told = OperationValues(("insert",), ("update_after",), ("delete",), ("update_before",))
    events = CdcSource(
        *("s", f"s{ALL_ROWS}", ("id",), told),
        operation=CHANGE_TYPE,
        late="apply",
        without=(SNAPSHOT_ID,),
    )
    changes = TableSource(f"s{ALL_ROWS}", NAME, changes=ChangeRange("all", net=True))
    cases, on = event_cases(events, "t", "s"), event_on(events, "t", "s")
    spec = MergeSpec("s", on, cases, "t", "s")
    steps = (
        "INSERT INTO db.t VALUES (1L, 'a', 0D, NULL, 0), (2L, 'b', 0D, map('k', 1), 1)",
        "UPDATE db.t SET v = 'c', p = 1 WHERE id = 1",
        "DELETE FROM db.t WHERE id = 2",
        "INSERT INTO db.t VALUES (2L, 'again', 1D, NULL, 0), (3L, 'x', 1D, NULL, 1)",
    )
    for at, step in enumerate(steps):
        bronze.do(step)
        if at == 2:
            continue
        request = JobRequest(
            *(f"copy-{at}", silver, bronze.catalog, spec, (changes, events)),
            origin=Origin("dag", f"run-{at}", "copy"),
        )
        assert run(request, spark).error is None
        connector = bronze.connector
        copies = []
        for name in (NAME, silver):
            table = connector.metadata.load_table(name)
            files = connector.metadata.plan_files(table)
            frame = connector.scan.read(spark, table, files, table.column_names)
            rows = frame.select(*table.column_names).collect()
            copies.append(sorted(map(str, rows)))
        assert copies[0] == copies[1]
