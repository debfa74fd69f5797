"""Change events in runs: files that come once, tries that are killed, tables that order rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.deduplication import ALL_ROWS
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import FileSource, JobRequest, Origin
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.merge_run import MergeRun
from tests.conformance.harness import TARGET, Harness
from tests.engine.cdc_logs import Event, Manner, batches, found, random_log, replayed

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
