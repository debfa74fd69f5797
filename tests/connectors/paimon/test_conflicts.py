"""Which commits of others are in the way of a commit: case by case, as docs/guarantees.md says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation, ReadSet
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    inserts,
    merge,
    read,
    snapshot_ids,
    store,
)


@pytest.fixture(params=[False, True], ids=["copy-on-write", "deletion vectors"])
def table(connector: Connector, request: pytest.FixtureRequest) -> TableHandle:
    """A file of two rows in each of the partitions 0 and 1."""
    options = {"deletion-vectors.enabled": "true"} if request.param else {}
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    append(connector, [{"id": i, "p": i % 2} for i in range(4)], "first")
    return connector.metadata.load_table(NAME)


def partition(*values: int) -> ReadSet:
    """The read set of a statement that reads these partitions."""
    return lambda files: [file for file in files if file.partition["p"] in values]


def ids_up_to(limit: int) -> ReadSet:
    """The read set of a statement that looks for ids up to this one."""

    def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        lows = {file.ordinal: file.ranges["id"].minimum for file in files}
        return [f for f in files if lows[f.ordinal] is None or lows[f.ordinal] <= limit]

    return read_set


def begun(connector: Connector, table: TableHandle, read_set: ReadSet, **more: Any) -> MergeHandle:
    files = tuple(read_set(connector.metadata.plan_files(table)))
    write = MergeWrite(Operation("op", "digest", {}), files, ((),), (), 2**27, read_set=read_set)
    return connector.writes.begin_merge(table, replace(write, **more))


def deletion(table: TableHandle, handle: MergeHandle, p: int) -> list[Fragment]:
    """The first row of a partition is deleted."""
    return store(handle, change_rows(table, rows.DELETE, [{"file": p, "position": 0}]))


def outcome(action: Callable[[], Any]) -> str:
    """``committed``, or the text of the conflict."""
    try:
        action()
    except JobError as error:
        if error.code is not ErrorCode.COMMIT_CONFLICT:
            raise
        return error.message
    return "committed"


def delete_other(connector: Connector, p: int) -> None:
    now = connector.metadata.load_table(NAME)
    gone = change_rows(now, rows.DELETE, [{"file": p, "position": 1}])
    merge(connector, now, gone, operation_id=f"other-{p}")


def test_an_append_to_a_partition_that_was_not_read(
    connector: Connector, table: TableHandle
) -> None:
    handle = begun(connector, table, partition(0))
    fragments = deletion(table, handle, 0)
    append_with_pypaimon(table, [{"id": 50, "p": 1}])
    append_with_pypaimon(table, [{"id": 51, "p": 2}])

    found = connector.writes.finish_merge(table, handle, fragments, {})

    assert found.snapshot_id == 4
    assert {row["id"] for row in read(connector)} == {1, 2, 3, 50, 51}


def test_an_append_to_a_partition_that_was_read(connector: Connector, table: TableHandle) -> None:
    handle = begun(connector, table, partition(0, 1))
    fragments = deletion(table, handle, 0)
    append_with_pypaimon(table, [{"id": 50, "p": 1}])

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message.startswith("Snapshot 2 (APPEND by ")
    assert "changed what the statement read in partitions p=1" in message
    assert len(read(connector)) == 5


def test_files_whose_bounds_exclude_what_was_looked_for(
    connector: Connector, table: TableHandle
) -> None:
    handle = begun(connector, table, ids_up_to(40))
    fragments = deletion(table, handle, 0)
    append(connector, [{"id": 50, "p": 0}], "far")

    assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 3


def test_two_merges_that_insert_the_same_new_key(connector: Connector, table: TableHandle) -> None:
    read_set = ids_up_to(99)
    handle = begun(connector, table, read_set)
    fragments = store(handle, inserts(table, [{"id": 99, "p": 0}]))
    append(connector, [{"id": 99, "p": 7}], "other")

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert "what the statement read" in message
    assert [row["id"] for row in read(connector)].count(99) == 1


def test_snapshot_isolation_lets_both_insert(connector: Connector, table: TableHandle) -> None:
    handle = begun(connector, table, ids_up_to(99), isolation="snapshot")
    fragments = store(handle, inserts(table, [{"id": 99, "p": 0}]))
    append(connector, [{"id": 99, "p": 7}], "other")

    assert outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {})) == (
        "committed"
    )
    assert [row["id"] for row in read(connector)].count(99) == 2


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_file_that_both_change(connector: Connector, table: TableHandle, isolation: str) -> None:
    handle = begun(connector, table, partition(0), isolation=isolation)
    fragments = deletion(table, handle, 0)
    delete_other(connector, 0)

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message.startswith("Snapshot 2 (OVERWRITE by other-0) changed")
    assert "in partitions p=0 while" in message
    assert {row["id"] for row in read(connector)} == {0, 1, 3}


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_deletions_in_another_partition(
    connector: Connector, table: TableHandle, isolation: str
) -> None:
    handle = begun(connector, table, partition(0), isolation=isolation)
    fragments = deletion(table, handle, 0)
    delete_other(connector, 1)

    assert outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {})) == (
        "committed"
    )
    assert {row["id"] for row in read(connector)} == {1, 2}


def test_a_file_of_deletion_vectors_that_both_write(connector: Connector) -> None:
    buckets = {"deletion-vectors.enabled": "true", "bucket": "1", "bucket-key": "id"}
    create(connector, {"id": "int", "p": "int"}, ["p"], buckets)
    for number in range(2):
        values = [{"id": 20 * number + i, "p": 0} for i in range(10)]
        append(connector, values, f"file-{number}")
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, lambda files: files[:1], isolation="snapshot")
    fragments = store(handle, change_rows(now, rows.DELETE, [{"file": 0, "position": 1}]))
    delete_other(connector, 1)
    append(connector, [{"id": 50, "p": 7}], "harmless")

    message = outcome(lambda: connector.writes.finish_merge(now, handle, fragments, {}))

    assert message == (
        "Snapshot 3 (OVERWRITE by other-1) changed deletion vectors that the statement rewrites "
        "in partitions p=0 while it ran."
    )
    assert len(read(connector)) == 20


def test_deletions_in_what_was_only_read(connector: Connector, table: TableHandle) -> None:
    outcomes = {}
    for isolation in ("serializable", "snapshot"):
        now = connector.metadata.load_table(NAME)
        handle = begun(connector, now, partition(0, 1), isolation=isolation)
        fragments = store(handle, inserts(now, [{"id": 70, "p": 0}]))
        append(connector, [{"id": 60, "p": 1}], f"before-{isolation}")
        outcomes[isolation] = outcome(
            lambda t=now, h=handle, f=fragments: connector.writes.finish_merge(t, h, f, {})  # type: ignore[misc]
        )
        connector.writes.release_guard(now, "op")

    assert "what the statement read" in outcomes["serializable"]
    assert outcomes["snapshot"] == "committed"


@contextmanager
def compacting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Snapshots are of the kind that compactions make."""
    new_snapshot = manifest_files.new_snapshot

    def compaction(*arguments: Any) -> Any:
        return replace(new_snapshot(*arguments), commit_kind="COMPACT")

    with monkeypatch.context() as patch:
        patch.setattr(manifest_files, "new_snapshot", compaction)
        yield


def compact(connector: Connector, monkeypatch: pytest.MonkeyPatch, p: int) -> None:
    """The rows of a partition in one new file."""
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, partition(p), operation=Operation("compactor", "", {}))
    kept = [{"id": i, "p": p} for i in range(4) if i % 2 == p]
    fragments = store(handle, inserts(now, kept))
    files = partition(p)(connector.metadata.plan_files(now))
    fragments += connector.writes.drop_files(now, handle, files)
    with compacting(monkeypatch):
        connector.writes.finish_merge(now, handle, fragments, {})


def test_a_compaction_of_what_was_only_read(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = begun(connector, table, partition(0, 1))
    fragments = deletion(table, handle, 0)
    compact(connector, monkeypatch, 1)

    assert outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {})) == (
        "committed"
    )
    assert {row["id"] for row in read(connector)} == {1, 2, 3}


def test_deletions_that_older_versions_of_paimon_call_a_compaction(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], {"deletion-vectors.enabled": "true"})
    append(connector, [{"id": i, "p": i % 2} for i in range(4)], "first")
    table = connector.metadata.load_table(NAME)
    handle = begun(connector, table, partition(0, 1))
    fragments = deletion(table, handle, 0)
    other = Operation("other", "", {})
    marking = begun(connector, table, partition(1), operation=other, rewrite_share=1.0)
    with compacting(monkeypatch):
        connector.writes.finish_merge(table, marking, deletion(table, marking, 1), {})

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message.startswith("Snapshot 2 (COMPACT by other) changed what the statement read")
    assert {row["id"] for row in read(connector)} == {0, 2, 3}


def test_a_compaction_of_a_file_that_is_changed(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = begun(connector, table, partition(0))
    fragments = deletion(table, handle, 0)
    compact(connector, monkeypatch, 0)

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message.startswith("Snapshot 2 (COMPACT by compactor) changed files")
    assert len(read(connector)) == 4


def test_rows_that_are_deleted_after_a_compaction_moved_them(
    connector: Connector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = begun(connector, table, partition(0, 1))
    fragments = deletion(table, handle, 0)
    compact(connector, monkeypatch, 1)
    now = connector.metadata.load_table(NAME)
    dropping = begun(connector, now, partition(1), operation=Operation("dropper", "", {}))
    files = partition(1)(connector.metadata.plan_files(now))
    dropped = connector.writes.drop_files(now, dropping, files)
    connector.writes.finish_merge(now, dropping, dropped, {})

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message.startswith("Snapshot 3 (OVERWRITE by dropper) changed what")


def test_a_table_that_was_rolled_back(connector: Connector, table: TableHandle) -> None:
    append(connector, [{"id": 10, "p": 0}], "second")
    now = connector.metadata.load_table(NAME)
    handle = begun(connector, now, partition(1))
    fragments = deletion(now, handle, 2)
    now.native.table.rollback_to(1)
    append_with_pypaimon(table, [{"id": 11, "p": 0}])

    message = outcome(lambda: connector.writes.finish_merge(now, handle, fragments, {}))

    assert "Snapshot 2, on which the statement builds, has expired or was rolled back" in message
    assert snapshot_ids(connector) == [1, 2]


def test_files_that_were_made_for_other_buckets(connector: Connector) -> None:
    """Where the last writer wins, the files of a statement are published on a newer table."""
    from pypaimon.schema.schema_change import SchemaChange

    name = TableName("shop", "bucketed")
    options = {"bucket": "2", "bucket-key": "id"}
    table = create(connector, {"id": "int"}, options=options, name=name)
    handle = begun(connector, table, lambda _: ())
    fragments = store(handle, inserts(table, [{"id": i} for i in range(9)]))
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(name), [SchemaChange.set_option("bucket", "4")])
    now = connector.metadata.load_table(name)

    message = outcome(lambda: connector.writes.finish_merge(now, handle, fragments, {}))

    assert message == f"The schema of {name} was changed while the statement ran."
    assert snapshot_ids(connector, name) == []


def test_a_table_that_was_dropped_and_made_anew_before_its_first_snapshot(
    connector: Connector,
) -> None:
    name = TableName("shop", "new")
    table = create(connector, {"id": "int"}, name=name)
    handle = begun(connector, table, lambda _: ())
    table.native.table.catalog_environment.catalog_loader.load().drop_table(str(name))
    create(connector, {"id": "int", "v": "string"}, name=name)
    fragments = store(handle, inserts(table, [{"id": 1}]))

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message == f"The schema of {name} was changed while the statement ran."
    assert snapshot_ids(connector, name) == []


def test_a_table_that_was_made_anew_as_it_was(connector: Connector) -> None:
    name = TableName("shop", "new")
    table = create(connector, {"id": "int"}, name=name)
    handle = begun(connector, table, lambda _: ())
    fragments = store(handle, inserts(table, [{"id": 1}]))
    table.native.table.catalog_environment.catalog_loader.load().drop_table(str(name))
    create(connector, {"id": "int"}, name=name)

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert message == f"{name} was dropped and created anew while the statement ran."
    assert (snapshot_ids(connector, name), read(connector, name=name)) == ([], [])


def test_another_driver_of_the_same_operation(connector: Connector, table: TableHandle) -> None:
    handles = [begun(connector, table, lambda _: ()) for _ in range(2)]
    fragments = [
        store(handle, inserts(table, [{"id": 99, "p": 3}]), task=f"task-{number}")
        for number, handle in enumerate(handles)
    ]
    connector.writes.finish_merge(table, handles[0], fragments[0], {})

    message = outcome(lambda: connector.writes.finish_merge(table, handles[1], fragments[1], {}))

    assert "Operation op was committed as snapshot 2 by another driver" in message
    assert [row["id"] for row in read(connector)].count(99) == 1


def test_an_ended_operation_of_the_same_task_that_published_late(
    connector: Connector, table: TableHandle
) -> None:
    operation = Operation("op", "digest", {}, ended=frozenset({"ended"}))
    handle = begun(connector, table, lambda _: (), operation=operation)
    fragments = store(handle, inserts(table, [{"id": 99, "p": 3}]))
    append(connector, [{"id": 99, "p": 3}], "ended")

    message = outcome(lambda: connector.writes.finish_merge(table, handle, fragments, {}))

    assert "Operation ended was committed as snapshot 2 by another driver" in message
    assert [row["id"] for row in read(connector)].count(99) == 1
