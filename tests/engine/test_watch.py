"""A long statement tells how far it is: in its log, and in the note of its operation."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.operation_files import running_path
from spark_jobs.contract.progress_note import ProgressNote, Share, catalog_mark
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource
from spark_jobs.contract.statements import InsertAllAction, MergeCase, MergeSpec
from spark_jobs.engine.job import request_job
from spark_jobs.engine.runtime import watch
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.watch import Watched, watching
from spark_jobs.run import run, run_all
from tests.support.paimon_tables import NAME, create, read

SECRET = "planted-in-the-statement"
# Hashes that take some seconds, in more tasks than there are cores.
SLOW = SqlSource(
    "s",
    "SELECT CAST(id AS INT) AS id FROM range(0, 160000, 1, 16) "
    f"WHERE sha2(repeat(CAST(id AS STRING), 400), 512) <> '{SECRET}' AND id % 40000 = 0",
)
QUICK = SqlSource("s", "SELECT CAST(id AS INT) AS id FROM range(5)")
NEW_ROWS = MergeSpec("s", "t.id = s.id", (MergeCase("not_matched", InsertAllAction()),), "t", "s")
ORIGIN = Origin("dag", "run", "task", 3, 2)


@dataclass
class Seen:
    """The notes of an operation that were there at some time, read as the page reads them."""

    path: Path
    notes: list[ProgressNote]
    ended: threading.Event

    def look(self) -> None:
        while not self.ended.wait(0.02):
            try:
                text = self.path.read_text()
            except FileNotFoundError:
                continue
            if text.strip():
                self.notes.append(ProgressNote.from_json(text))


@dataclass(frozen=True)
class Lake:
    """A table of numbers in a warehouse of its own."""

    warehouse: Path

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("paimon", str(self.warehouse))

    def request(self, source: SqlSource = SLOW, **fields: Any) -> JobRequest:
        found = JobRequest("op-1", NAME, self.catalog, NEW_ROWS, (source,), origin=ORIGIN)
        return replace(found, **fields)

    def note(self, operation_id: str = "op-1") -> Path:
        return self.warehouse / running_path(operation_id)

    def rows(self) -> list[int]:
        return [row["id"] for row in read(open_connector(self.catalog, {}))]


def lake_in(folder: Path) -> Lake:
    """A lake with an empty table."""
    folder.mkdir()
    found = Lake(folder)
    create(open_connector(found.catalog, {}), {"id": "INT"})
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_in(tmp_path / "lake")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs look at once, and often."""
    monkeypatch.setattr(request_job, "watching", partial(watching, first=0.05, every=0.05))


@pytest.fixture
def seen(lake: Lake) -> Iterator[Seen]:
    found = Seen(lake.note(), [], threading.Event())
    thread = threading.Thread(target=found.look)
    thread.start()
    yield found
    found.ended.set()
    thread.join()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "airflow_provider_merge.job")
    return lambda: [each for each in caplog.messages if each.startswith("progress: ")]


@pytest.mark.usefixtures("soon")
def test_a_long_statement_tells_how_far_it_is(
    spark: SparkSession, lake: Lake, seen: Seen, lines: Callable[[], list[str]]
) -> None:
    began = time.time()

    result = run(lake.request(), spark)

    assert result.error is None
    assert sorted(lake.rows()) == [0, 40000, 80000, 120000]
    first = seen.notes[0]
    assert (first.table, first.kind, first.origin) == (str(NAME), "merge", ORIGIN)
    assert first.catalog == catalog_mark(lake.catalog)
    assert began <= first.began <= first.noted <= time.time()
    at_work = [each for each in seen.notes if each.share.tasks == 16]
    assert at_work, seen.notes
    assert at_work[0].phase == "source"
    done = [each.share.tasks_done for each in at_work]
    assert done == sorted(done)
    assert done[-1] > done[0]
    # Neither the statement's text nor a value of a row.
    assert not any(SECRET in each.to_json() for each in seen.notes)
    told = [each for each in lines() if "of 16 tasks" in each]
    assert 2 <= len(told) <= 11, told
    # When it has ended, it is not said to run.
    assert not lake.note().exists()


def test_a_short_statement_costs_no_look(
    spark: SparkSession,
    lake: Lake,
    seen: Seen,
    lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[object] = []
    monkeypatch.setattr(watch, "share_of", lambda *given: looks.append(given))

    assert run(lake.request(QUICK), spark).error is None

    assert (looks, seen.notes, lines()) == ([], [], [])


@pytest.mark.usefixtures("soon")
def test_notes_that_cannot_be_written_do_not_matter(
    spark: SparkSession, lake: Lake, lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("planted")

    monkeypatch.setattr(watch, "replace_file", refuse)

    assert run(lake.request(), spark).error is None

    assert lines()
    assert len(lake.rows()) == 4


@pytest.mark.usefixtures("soon")
def test_a_store_that_hangs_with_a_note_holds_nothing_up(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr(watch, "replace_file", lambda *_: held.wait(60))
    monkeypatch.setattr(watch, "_PATIENCE", 0.1)

    began = time.monotonic()
    result = run(lake.request(QUICK), spark)
    held.set()

    assert result.error is None
    assert time.monotonic() - began < 30
    assert len(lake.rows()) == 5


@pytest.mark.usefixtures("soon")
def test_a_dry_run_and_a_statement_that_fails_leave_no_note(
    spark: SparkSession, lake: Lake, seen: Seen
) -> None:
    assert run(lake.request(dry_run=True, operation_id="op-2"), spark).status == "dry_run"
    assert not lake.note("op-2").exists()
    wrong = SqlSource("s", SLOW.query.replace("CAST(id AS INT) AS id", "raise_error('no') AS id"))

    result = run(lake.request(wrong), spark)

    assert result.error is not None
    assert not lake.note().exists()


@pytest.mark.usefixtures("soon")
def test_statements_side_by_side_tell_their_own_share(
    spark: SparkSession, tmp_path: Path, lake: Lake, seen: Seen
) -> None:
    other = lake_in(tmp_path / "other")
    wider = SqlSource("s", SLOW.query.replace("1, 16)", "1, 23)"))
    requests = (lake.request(), other.request(wider, operation_id="op-2"))

    results = run_all(JobBatch("batch", requests, max_parallel=2), spark)

    assert [each.status for each in results.values()] == ["committed", "committed"]
    assert 16 in {each.share.tasks for each in seen.notes}
    assert not {each.share.tasks for each in seen.notes} & {23, 39}


def test_lines_come_with_a_phase_or_ten_percents(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = iter(
        [Share(), *(Share(done, 100) for done in (0, 4, 10, 11, 12, 25, 26)), Share(1, 9)]
    )
    phases = iter(["plan", *["write"] * 7, "write"])
    progress, noted = Progress(), []
    request = JobRequest("op-1", NAME, CatalogSpec("paimon", "/lake"), NEW_ROWS, (QUICK,))

    def look(_: Watched, began: float) -> ProgressNote:
        return ProgressNote.of(request, began, time.time(), next(phases), next(shares))

    monkeypatch.setattr(Watched, "look", look)
    monkeypatch.setattr(Watched, "write", lambda _, note: noted.append(note))

    with watching(Watched(request, progress, None, None), 0.01, 0.01):
        time.sleep(0.5)

    told = [each.partition("tasks")[0].rpartition(";")[2].strip() for each in lines()]
    assert told[0].startswith("progress: plan")
    assert told[1:] == ["0 of 100", "10 of 100", "25 of 100", "1 of 9"]
    # Each look told something else.
    assert len(noted) == 9
