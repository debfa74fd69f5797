"""An undo of Iceberg tables that is killed at any step is finished by a retry, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.commit import snapshot_commit
from spark_jobs.connectors.iceberg.maintenance import undo
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.undo import UndoRunSpec
from spark_jobs.engine.job.undo_job import UndoJob
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.undo_state import places, rows_with_ids
from tests.support.iceberg_version_3 import upgrade
from tests.support.undone_runs import of_run

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
NAMES = [TableName("db", name) for name in ("one", "two")]
MODES = ("copy-on-write", "merge-on-read", "version 3")
# Where a driver may die: the function in its module, and whether before or behind its work.
STEPS: Mapping[str, tuple[Any, str]] = {
    "plan": (undo, "planned"),
    "files are there": (undo, "_require_files"),
    "copies": (undo, "copy_files"),
    "files": (undo.RestoredFiles, "changes"),
    "publication": (snapshot_commit.SnapshotCommits, "publish"),
    "report": (UndoJob, "_result"),
}
Rows = dict[str, list[tuple[Any, ...]]]


class KilledError(BaseException):
    """The driver died."""


class Tables:
    """Two tables to which the run ``r`` has committed; ``before`` has their rows without it."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.catalog = PlainCatalog(folder)
        library = self.catalog.library()
        library.create_namespace("db")
        way = "copy-on-write" if mode == "copy-on-write" else "merge-on-read"
        properties = {f"write.{each}.mode": way for each in ("delete", "update", "merge")}
        for name in NAMES:
            table = library.create_table(
                ("db", name.table), SCHEMA, properties={"format-version": "2", **properties}
            )
            if mode == "version 3":
                upgrade(table)
        self.connector: Connector = self.catalog.open()
        for name in NAMES:
            self._write(name, f"base-{name.table}", "base", add=[1, 2, 3, 4])
        self.before = self.rows()
        for name in NAMES:
            self._write(name, f"a-{name.table}", "r", add=[20, 21])
            self._write(name, f"b-{name.table}", "r", gone=[1, 3])
        self.after = self.rows()

    def _write(self, name: TableName, operation_id: str, run_id: str, **more: Any) -> None:
        found = DirectWrite(
            self.connector,
            operation_id,
            name=name,
            properties=of_run(run_id, operation_id),
            rewrite_share=0.9,
        )
        known = places(self.connector, name)
        gone = [known[each] for each in more.get("gone", ())]
        for file in {file for file, _ in gone}:
            found.delete(file, *sorted(position for each, position in gone if each == file))
        if "add" in more:
            found.insert(*({"id": each, "s": f"s{each}"} for each in more["add"]))
        found.publish()

    def rows(self) -> Rows:
        return {name.table: rows_with_ids(self.connector, name) for name in NAMES}

    def snapshots(self, operation_id: str) -> list[int]:
        """How many snapshots of each table are of the operation."""
        found = []
        for name in NAMES:
            history = pinned_table(self.connector.metadata.load_table(name)).metadata.snapshots
            named = [each.summary["merge.operation-id"] for each in history]
            found.append(named.count(operation_id))
        return found

    def undo(self, try_number: int = 1) -> JobResult:
        spec = UndoRunSpec("d", "r", tuple(map(str, NAMES)))
        folder = str(self.catalog.folder)
        place = CatalogSpec("iceberg", folder, self.catalog.options, workspace=folder)
        own = Origin("care", "u-run", "t", try_number=try_number, retries=1)
        return run(JobRequest("u", NAMES[0], place, spec, origin=own), None)


def dying(real: Callable[..., Any], left: int, *, is_behind: bool) -> Callable[..., Any]:
    """``real``, whose call with this number, from 0, is the last thing that the driver does."""
    calls = [left]

    def work(*arguments: Any, **more: Any) -> Any:
        calls[0] -= 1
        is_last = calls[0] < 0
        if is_last and not is_behind:
            raise KilledError
        found = real(*arguments, **more)
        if is_last:
            raise KilledError
        return found

    return work


@pytest.mark.by_turns(36)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_undo_is_finished_by_a_retry(
    number: int, step: str, is_behind: bool, mode: str, tmp_path: Path, monkeypatch: Any
) -> None:
    tables = Tables(tmp_path, mode)
    place, name = STEPS[step]
    number = 0 if step == "report" else number
    monkeypatch.setattr(place, name, dying(getattr(place, name), number, is_behind=is_behind))
    with pytest.raises(KilledError):
        tables.undo()
    monkeypatch.undo()
    some = tables.rows()
    for each in NAMES:
        assert some[each.table] in (tables.before[each.table], tables.after[each.table])

    done = tables.undo(2)

    assert done.error is None
    assert done.undo is not None
    assert {each.outcome for each in done.undo.tables} == {"undone"}
    assert tables.rows() == tables.before
    assert tables.snapshots("u") == [1, 1]


@pytest.mark.by_turns(12)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("is_behind", [False, True], ids=["before", "behind"])
def test_an_undo_that_is_killed_at_a_write_of_the_catalog_is_finished_once(
    is_behind: bool, number: int, mode: str, tmp_path: Path, monkeypatch: Any
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    tables = Tables(tmp_path, mode)
    monkeypatch.setattr(
        SqlCatalog, "commit_table", dying(SqlCatalog.commit_table, number, is_behind=is_behind)
    )
    try:
        tables.undo()
        was_killed = False
    except KilledError:
        was_killed = True
    monkeypatch.undo()

    done = tables.undo(2)

    assert was_killed == (number < len(NAMES))
    assert done.error is None
    assert tables.rows() == tables.before
    assert tables.snapshots("u") == [1, 1]
