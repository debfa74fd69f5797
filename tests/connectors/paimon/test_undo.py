"""A run's commits are taken back by one snapshot, or refused by name; without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.support.direct_merges import live_rows, merge_rows
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    begin,
    create,
    read,
    snapshot_ids,
)
from tests.support.undone_runs import of_run, told, undoing, undone, undone_undo

VECTORS = {"deletion-vectors.enabled": "true"}
KINDS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "append": ({}, ()),
    "vectors": (VECTORS, ()),
    "buckets": ({"bucket": "2", "bucket-key": "id"}, ()),
    "bucketed vectors": ({**VECTORS, "bucket": "2", "bucket-key": "id"}, ()),
    "row tracking": ({"row-tracking.enabled": "true"}, ()),
    "tracked vectors": ({"row-tracking.enabled": "true", **VECTORS}, ()),
    "key": ({"bucket": "2"}, ("id",)),
    "dynamic key": ({}, ("id",)),
    "last value": ({"bucket": "1", "merge-engine": "partial-update"}, ("id",)),
}
pytestmark = pytest.mark.by_turns(5)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(connector: Connector, kind: str) -> Connector:
    """Two commits of four rows each, and one that deletes and updates."""
    options, key = KINDS[kind]
    create(connector, {"id": "int", "s": "string"}, (), options, primary_key=key)
    write(connector, "base1", "base", dict.fromkeys(range(4), "a"))
    write(connector, "base2", "base", dict.fromkeys(range(10, 14), "a"))
    write(connector, "base3", "base", {1: None, 11: None})
    return connector


def write(
    connector: Connector, operation_id: str, run: str, changes: Mapping[int, str | None]
) -> None:
    """Set ``s`` of these ids, which may be new; None: delete the row."""
    source = [{"id": id_, "s": s} for id_, s in changes.items()]
    done = merge_rows(
        connector,
        NAME,
        ["id"],
        source,
        ["s"],
        lambda row: row["s"] is None,
        operation_id=operation_id,
        properties=of_run(run, operation_id),
    )
    assert done is not None


def state(connector: Connector) -> list[Any]:
    """All rows, as pypaimon reads them, with ids of rows where they have some."""
    table = connector.metadata.load_table(NAME)
    if table.native.tracks_rows:
        builder = table.native.table.new_read_builder()
        names = ["id", "s", "_ROW_ID", "_SEQUENCE_NUMBER"]
        builder = builder.with_projection(names)
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        return sorted(found, key=repr)
    return read(connector)


def ids(connector: Connector) -> list[int]:
    return sorted(row["id"] for row in read(connector))


def refusal(work: Callable[[], object]) -> tuple[ErrorCode, str]:
    with pytest.raises(JobError) as caught:
        work()
    return caught.value.code, str(caught.value)


def test_what_a_run_did_is_taken_back(table: Connector) -> None:
    before = state(table)
    write(table, "a", "r", {20: "new", 21: "new"})
    write(table, "b", "r", {2: None, 12: "changed"})
    write(table, "c", "r", {20: "changed", 3: "changed"})
    after = state(table)

    report = undone(table, NAME, "r", "u")

    assert report.outcome == "undone"
    assert [each.operation_id for each in report.commits] == ["c", "b", "a"]
    assert state(table) == before
    assert sorted(map(repr, _plain(table))) == sorted(repr((r["id"], r["s"])) for r in before)

    assert undone_undo(table, NAME, "u", "uu").outcome == "undone"
    assert state(table) == after
    assert undone(table, NAME, "r", "uuu").outcome == "undone"
    assert state(table) == before
    write(table, "d", "other", {2: "later", 30: "later"})
    assert {30} == set(ids(table)) - {row["id"] for row in before}


def _plain(connector: Connector) -> list[tuple[int, str]]:
    rows = live_rows(connector, connector.metadata.load_table(NAME))
    return [(row["id"], row["s"]) for row in rows]


def test_later_commits_stay_or_are_named(table: Connector, kind: str) -> None:
    write(table, "a", "r", {20: "new"})
    write(table, "b", "r", {12: "changed"})
    append_with_pypaimon(table.metadata.load_table(NAME), [{"id": 100, "s": "x"}])

    assert table.undo is not None
    report = table.undo.undone(NAME, undoing("r"))

    assert report.outcome == "undone"
    assert ids(table) == [0, 2, 3, 10, 12, 13, 100]
    assert {row["s"] for row in read(table)} == {"a", "x"}


@pytest.mark.parametrize("changes", [{20: None}, {20: "x"}, {12: "x"}, {12: None}])
def test_what_others_built_on_is_refused_by_name(
    table: Connector, changes: Mapping[int, str | None]
) -> None:
    write(table, "a", "r", {20: "new", 21: "new"})
    write(table, "b", "r", {12: "changed"})
    write(table, "x", "other", changes)
    before, last = state(table), snapshot_ids(table)[-1]

    code, text = refusal(lambda: undone(table, NAME, "r", "u"))

    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "shop.orders: the run cannot be undone, because snapshot" in text
    assert "operation x of DAG d, run other, task t" in text
    assert state(table) == before
    assert snapshot_ids(table)[-1] == last
    # But if that run is undone first, this one can be.
    undone(table, NAME, "other", "v")
    undone(table, NAME, "r", "u")
    assert ids(table) == [0, 2, 3, 10, 12, 13]
    assert {row["s"] for row in read(table)} == {"a"}


def test_an_operation_that_was_taken_back_does_not_count(table: Connector) -> None:
    write(table, "a", "r", {20: "new"})
    made = _found(table, "a")
    undone(table, NAME, "r", "u")

    assert _found(table, "a") is None
    handle = table.metadata.load_table(NAME)
    assert table.writes.recall(handle, made.snapshot_id) is None
    write(table, "a", "r", {20: "new"})
    assert _found(table, "a").snapshot_id > made.snapshot_id
    code, text = refusal(lambda: undone_undo(table, NAME, "u", "uu"))
    assert code is ErrorCode.COMMITS_OF_OTHERS
    assert "has done the work of that run again" in text
    undone(table, NAME, "r", "u2")
    assert ids(table) == [0, 2, 3, 10, 12, 13]
    assert undone(table, NAME, "r", "u3").outcome == "unchanged"


def _found(connector: Connector, operation_id: str) -> Any:
    return connector.writes.find_commit(connector.metadata.load_table(NAME), operation_id)


# An overwrite of dynamic buckets removes keys from their index, and is not undone.
@pytest.mark.parametrize("kind", [each for each in KINDS if each != "dynamic key"], indirect=True)
def test_copies_outlive_what_was_removed(table: Connector, kind: str, warehouse: Path) -> None:
    """Another engine's expiry removes the files that the run removed."""
    before = state(table)
    native = table.metadata.load_table(NAME)
    old = [path for path, _ in native.native.files.located_entries]
    handle = begin(table, native, "b")
    fragments = table.writes.drop_files(native, handle, handle.native.write.files)
    table.writes.finish_merge(native, handle, fragments, of_run("r", "b"))
    assert ids(table) == []

    report = undone(table, NAME, "r", "u")

    assert told(report)["files_restored"] == len(old)
    for each in old:
        Path(each).unlink()
    assert state(table) == before


def test_files_that_are_gone_are_named(table: Connector) -> None:
    native = table.metadata.load_table(NAME)
    old = [path for path, _ in native.native.files.located_entries]
    handle = begin(table, native, "b")
    fragments = table.writes.drop_files(native, handle, handle.native.write.files)
    table.writes.finish_merge(native, handle, fragments, of_run("r", "b"))
    for each in old:
        Path(each).unlink()

    code, text = refusal(lambda: undone(table, NAME, "r", "u"))

    assert code is ErrorCode.COMMIT_HISTORY_EXPIRED
    assert any(each in text for each in old)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bucket": "1", "changelog-producer": "input"}, "changelog-producer = input"),
        ({"bucket": "1", "deletion-vectors.enabled": "true"}, "deletion-vectors.enabled"),
        ({"bucket": "1", "merge-engine": "first-row"}, "merge-engine = first-row"),
        ({"bucket": "-2"}, "bucket = -2"),
    ],
)
def test_tables_that_are_not_supported(
    connector: Connector, options: Mapping[str, str], reason: str
) -> None:
    create(connector, {"id": "int", "s": "string"}, (), options, primary_key=["id"])
    write(connector, "a", "r", {1: "a"})

    code, text = refusal(lambda: undone(connector, NAME, "r", "u"))

    assert code is ErrorCode.NOT_SUPPORTED
    assert reason in text


def test_history_that_has_expired_is_told(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int", "s": "string"})
    for number in range(3):
        write(connector, f"a{number}", "r", {number: "a"})
    folder = warehouse / "shop.db/orders/snapshot"
    (folder / "snapshot-1").unlink()
    (folder / "EARLIEST").write_text("2")

    report = undone(connector, NAME, "r", "u")

    assert (report.outcome, report.oldest, len(report.commits)) == ("undone", 2, 2)
    assert ids(connector) == [0]
    document = json.loads((folder / "snapshot-4").read_text())
    assert json.loads(document["properties"]["merge.undone-operations"]) == ["a1", "a2"]
