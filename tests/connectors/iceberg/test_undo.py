"""A run's commits are taken back by one snapshot, or refused by name; without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request, refused
from tests.connectors.iceberg.direct import DirectWrite, found, ids_of
from tests.connectors.iceberg.plain_history import refusal
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support.iceberg_version_3 import upgrade
from tests.support.undone_runs import of_run, told, undoing, undone, undone_undo

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
MODES = ("copy-on-write", "merge-on-read", "version 3")
pytestmark = pytest.mark.by_turns(3)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "s": [f"s{i}" for i in ids]}, schema=SCHEMA)


def made(folder: Path, mode: str) -> PlainCatalog:
    """A table with two files of four rows each."""
    catalog = PlainCatalog(folder)
    is_3, marks = mode == "version 3", mode != "copy-on-write"
    way = "merge-on-read" if marks else "copy-on-write"
    properties = {f"write.{each}.mode": way for each in ("delete", "update", "merge")}
    table = catalog.create(SCHEMA, {"format-version": "2", **properties}, None)
    if is_3:
        upgrade(table)
    connector = catalog.open()
    for start in (0, 10):
        append(connector, f"base-{start}", "base", *range(start, start + 4))
    return catalog


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def catalog(tmp_path: Path, mode: str) -> PlainCatalog:
    return made(tmp_path, mode)


def write(connector: Connector, operation_id: str, run: str, **more: Any) -> DirectWrite:
    found = of_run(run, operation_id)
    return DirectWrite(connector, operation_id, properties=found, **more)


def append(connector: Connector, operation_id: str, run: str, *ids: int) -> None:
    new = [{"id": i, "s": f"s{i}"} for i in ids]
    write(connector, operation_id, run, reads=False).insert(*new).publish()


def state(connector: Connector) -> list[tuple[Any, ...]]:
    """All rows, as this project reads them, with ids of rows where they have some."""
    from tests.connectors.iceberg.undo_state import rows_with_ids

    return rows_with_ids(connector, NAME)


def file_of(connector: Connector, id_: int) -> tuple[int, int]:
    """The ordinal of the file with an id, and its position there."""
    from tests.connectors.iceberg.undo_state import places

    return places(connector, NAME)[id_]


def delete(connector: Connector, operation_id: str, run: str, *ids: int) -> None:
    found = write(connector, operation_id, run, rewrite_share=0.9)
    by_file: dict[int, list[int]] = {}
    for each in ids:
        file, position = file_of(connector, each)
        by_file.setdefault(file, []).append(position)
    for file, positions in sorted(by_file.items()):
        found.delete(file, *sorted(positions))
    found.publish()


def update(connector: Connector, operation_id: str, run: str, id_: int, s: str) -> None:
    found = write(connector, operation_id, run, rewrite_share=0.9)
    found.update(*file_of(connector, id_), s).publish()


def test_what_a_run_did_is_taken_back(catalog: PlainCatalog, connector: Connector) -> None:
    before = state(connector)
    append(connector, "a", "r", 20, 21)
    delete(connector, "b", "r", 1, 11)
    update(connector, "c", "r", 20, "new")
    update(connector, "e", "r", 2, "new")
    after = state(connector)

    report = undone(connector, NAME, "r", "u")

    assert report.outcome == "undone"
    assert [each.operation_id for each in report.commits] == ["e", "c", "b", "a"]
    assert state(connector) == before
    assert ids_of(catalog) == [*range(4), *range(10, 14)]

    again = undone_undo(connector, NAME, "u", "uu")

    assert again.outcome == "undone"
    assert state(connector) == after
    assert undone(connector, NAME, "r", "uuu").outcome == "undone"
    assert state(connector) == before


def test_later_commits_stay(connector: Connector) -> None:
    append(connector, "a", "r", 20)
    delete(connector, "b", "r", 1)
    append(connector, "x", "other", 30)
    delete(connector, "y", "other", 11)

    undone(connector, NAME, "r", "u")

    assert sorted(row[0] for row in state(connector)) == [0, 1, 2, 3, 10, 12, 13, 30]


def test_an_operation_that_was_taken_back_does_not_count(connector: Connector) -> None:
    append(connector, "a", "r", 20)
    made = found(connector, "a")
    assert made is not None
    undone(connector, NAME, "r", "u")

    assert found(connector, "a") is None
    table = connector.metadata.load_table(NAME)
    assert connector.writes.recall(table, made.snapshot_id) is None

    undone_undo(connector, NAME, "u", "uu")

    assert found(connector, "a") == made
    assert found(connector, "u") is None
    undone(connector, NAME, "r", "u3")
    append(connector, "a", "r", 20)
    assert found(connector, "a") is not None
    report = undone(connector, NAME, "r", "u4")
    assert [each.operation_id for each in report.commits] == ["a"]
    assert found(connector, "a") is None
    assert undone(connector, NAME, "r", "u5").outcome == "unchanged"


@pytest.mark.parametrize("what", ["deleted", "rewritten", "marked file"])
def test_what_others_built_on_is_refused_by_name(
    connector: Connector, what: str, mode: str
) -> None:
    append(connector, "a", "r", 20, 21)
    delete(connector, "b", "r", 1)
    if what == "deleted":
        delete(connector, "x", "other", 20)
    elif what == "rewritten":
        update(connector, "x", "other", 21, "x")
    else:
        delete(connector, "x", "other", 0)
    before = state(connector)

    code, text = refusal(lambda: undone(connector, NAME, "r", "u"))

    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "db.t: the run cannot be undone, because snapshot" in text
    assert "operation x of DAG d, run other, task t" in text
    assert state(connector) == before


def test_other_engines_are_named(tmp_path: Path) -> None:
    catalog = made(tmp_path, "copy-on-write")
    connector = catalog.open()
    append(connector, "a", "r", 20)
    table = catalog.library().load_table(("db", "t"))
    table.overwrite(rows(99))

    code, text = refusal(lambda: undone(connector, NAME, "r", "u"))

    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "another writer has removed or rewritten a file of the run" in text


def test_files_that_are_gone_are_named(catalog: PlainCatalog, connector: Connector) -> None:
    old = {each.path for each in connector.metadata.load_table(NAME).native.files}
    whole = write(connector, "b", "r")
    whole.fragments += connector.writes.drop_files(whole.table, whole.handle, whole.files)
    whole.publish()
    for each in old:
        Path(each).unlink()

    code, text = refusal(lambda: undone(connector, NAME, "r", "u"))

    assert code is ErrorCode.COMMIT_HISTORY_EXPIRED
    assert any(each in text for each in old)


def test_copies_outlive_the_expiry_of_what_removed_them(
    catalog: PlainCatalog, connector: Connector
) -> None:
    before = {each.path for each in connector.metadata.load_table(NAME).native.files}
    whole = write(connector, "b", "r")
    whole.fragments += connector.writes.drop_files(whole.table, whole.handle, whole.files)
    whole.publish()

    report = undone(connector, NAME, "r", "u")

    assert told(report) == {"files_removed": 0, "files_restored": 2, "deletes_restored": 0}
    now = {each.path for each in connector.metadata.load_table(NAME).native.files}
    assert not before & now
    for each in before:
        Path(each).unlink()
    assert ids_of(catalog) == [0, 1, 2, 3, 10, 11, 12, 13]


@pytest.mark.parametrize("answer", [lost_answer, lost_request, refused])
def test_a_lost_answer_undoes_once(
    connector: Connector, monkeypatch: pytest.MonkeyPatch, answer: Callable[[Any], Any]
) -> None:
    before = state(connector)
    append(connector, "a", "r", 20)
    delete(connector, "b", "r", 1)
    answering(connector, monkeypatch, answer)

    undone(connector, NAME, "r", "u")

    assert state(connector) == before
    history = connector.metadata.load_table(NAME).native.metadata.snapshots
    assert sum(each.summary["merge.operation-id"] == "u" for each in history) == 1


def test_it_is_planned_again_behind_others(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(connector, "a", "r", 20)
    delete(connector, "b", "r", 1)

    def meanwhile(*changes: Callable[[], None]) -> Callable[[Any], Any]:
        def commit(real: Callable[[], Any]) -> Any:
            for each in changes:
                each()
            return real()

        return commit

    answering(connector, monkeypatch, meanwhile(lambda: append(connector, "x", "other", 30)))
    undone(connector, NAME, "r", "u")
    assert sorted(row[0] for row in state(connector)) == [0, 1, 2, 3, 10, 11, 12, 13, 30]

    append(connector, "a2", "r", 21)
    append(connector, "a3", "r", 22)
    answering(connector, monkeypatch, meanwhile(lambda: delete(connector, "y", "other", 21)))
    code, text = refusal(lambda: undone(connector, NAME, "r", "u2"))
    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "operation y" in text
    assert sorted(row[0] for row in state(connector))[-2:] == [22, 30]


def test_nothing_is_published_unless_it_is_wanted(connector: Connector) -> None:
    append(connector, "a", "r", 20)
    delete(connector, "b", "r", 1)
    table = connector.metadata.load_table(NAME)
    before, files = state(connector), stored(table)

    def unwanted() -> None:
        raise JobError(ErrorCode.RUN_GIVEN_UP, "given up")

    assert connector.undo is not None
    with pytest.raises(JobError, match="given up"):
        connector.undo.undone(NAME, undoing("r", require_wanted=unwanted))

    assert state(connector) == before
    assert stored(table) == files
    planned = connector.undo.planned(NAME, undoing("r"))
    assert planned.outcome == "planned"
    assert stored(table) == files


def stored(table: Any) -> Sequence[str]:
    folder = Path(table.native.storage.path(table.native.metadata.location))
    return sorted(str(each) for each in folder.rglob("*") if each.is_file())
