"""Commits through a catalog: one snapshot or none, whatever is answered; who is in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.maintenance import SetCurrentSnapshotSpec
from spark_jobs.contract.operation_files import base_path
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request, refused
from tests.connectors.iceberg.direct import DirectWrite, found, ids_in, ids_of
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": each, "s": "x"} for each in ids], schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """A file with the ids 0 to 4, another one with 10 to 14."""
    made = PlainCatalog(tmp_path)
    made.create(SCHEMA, {"format-version": "2"}, rows(*range(5)))
    made.library().load_table(("db", "t")).append(rows(*range(10, 15)))
    return made


def file_with(write: DirectWrite, id_: int) -> int:
    return next(
        e.ordinal for e in write.files if e.ranges["id"].minimum <= id_ <= e.ranges["id"].maximum
    )


def data_files(catalog: PlainCatalog) -> set[Path]:
    return set(catalog.folder.rglob("*.parquet"))


def library_table(catalog: PlainCatalog) -> Any:
    return catalog.library().load_table(("db", "t"))


def test_a_write_is_one_snapshot_that_pyiceberg_reads(
    catalog: PlainCatalog, connector: Connector
) -> None:
    before = library_table(catalog).current_snapshot()
    write = DirectWrite(connector)
    write.delete(file_with(write, 11), 1, 3).insert({"id": 20, "s": "new"})

    committed = write.publish()

    table = library_table(catalog)
    snapshot = table.current_snapshot()
    assert (snapshot.snapshot_id, snapshot.parent_snapshot_id) == (
        committed.snapshot_id,
        before.snapshot_id,
    )
    assert ids_of(catalog) == [0, 1, 2, 3, 4, 10, 12, 14, 20]
    summary = snapshot.summary
    assert summary.operation.value == "overwrite"
    assert {name: summary[name] for name in ("total-records", "deleted-records")} == {
        "total-records": "9",
        "deleted-records": "5",
    }
    statuses = sorted(table.inspect.entries().column("status").to_pylist())
    assert statuses == [0, 1, 1, 2] or statuses == [1, 1, 1, 2]
    table.append(rows(30))
    table.delete("id = 20")
    assert ids_of(catalog) == [0, 1, 2, 3, 4, 10, 12, 14, 30]


@pytest.mark.parametrize("answer", [lost_answer, lost_request, refused])
def test_the_snapshot_is_there_once_whatever_the_catalog_answers(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Any], Any],
) -> None:
    write = DirectWrite(connector).insert({"id": 20, "s": "new"})
    answering(connector, monkeypatch, answer, answer)

    committed = write.publish()

    assert ids_of(catalog).count(20) == 1
    assert len(library_table(catalog).snapshots()) == 3
    assert found(catalog.open(), write.operation_id) == committed


def test_without_any_answer_the_outcome_is_unknown_and_no_file_is_removed(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = DirectWrite(connector).insert({"id": 20, "s": "new"})
    files = data_files(catalog)
    answering(connector, monkeypatch, *[lost_request] * 9)

    with pytest.raises(JobError) as caught:
        write.publish()

    assert caught.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert data_files(catalog) == files
    assert found(catalog.open(), write.operation_id) is None


def test_a_write_that_is_given_up_leaves_nothing(
    catalog: PlainCatalog, connector: Connector
) -> None:
    files = data_files(catalog)
    write = DirectWrite(connector)
    write.delete(0, 1).insert({"id": 20, "s": "new"})
    note = catalog.folder / base_path(write.operation_id)
    assert note.exists()
    assert len(data_files(catalog)) == len(files) + 2

    write.abort()

    assert data_files(catalog) == files
    assert not note.exists()
    assert len(library_table(catalog).snapshots()) == 2


def test_giving_up_what_was_published_removes_nothing(
    catalog: PlainCatalog, connector: Connector
) -> None:
    write = DirectWrite(connector).insert({"id": 20, "s": "new"})
    committed = write.publish()

    write.abort()

    assert 20 in ids_of(catalog)
    assert found(connector, write.operation_id) == committed


def append_beside(catalog: PlainCatalog) -> None:
    library_table(catalog).append(rows(100, 101))


def delete_beside(catalog: PlainCatalog) -> None:
    library_table(catalog).delete("id = 2")


def alter_beside(catalog: PlainCatalog) -> None:
    from pyiceberg.types import LongType

    with library_table(catalog).update_schema() as update:
        update.add_column("more", LongType())


def commit_to_a_branch(catalog: PlainCatalog) -> None:
    table = library_table(catalog)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "other").commit()
    table.append(rows(999), branch="other")


def set_a_property(catalog: PlainCatalog) -> None:
    with library_table(catalog).transaction() as transaction:
        transaction.set_properties(owner="me")


@pytest.mark.parametrize(
    ("other", "read", "isolation", "conflicts"),
    [
        (append_beside, (0, 4), "serializable", False),
        (append_beside, (0, 100), "serializable", True),
        (append_beside, (0, 100), "snapshot", False),
        (delete_beside, (10, 14), "serializable", False),
        (delete_beside, (0, 4), "serializable", True),
        (alter_beside, (10, 14), "snapshot", True),
        (commit_to_a_branch, (0, 999), "serializable", False),
        (set_a_property, (0, 999), "serializable", False),
    ],
)
def test_what_is_in_the_way_of_a_change_to_the_second_file(
    catalog: PlainCatalog,
    connector: Connector,
    other: Callable[[PlainCatalog], None],
    read: tuple[int, int],
    isolation: str,
    conflicts: bool,
) -> None:
    write = DirectWrite(connector, read_set=ids_in(*read), isolation=isolation)
    write.delete(file_with(write, 11), 1)
    other(catalog)
    beside = ids_of(catalog)

    if conflicts:
        with pytest.raises(JobError) as caught:
            write.publish()
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
        assert ids_of(catalog) == beside
    else:
        write.publish()
        assert ids_of(catalog) == [each for each in beside if each != 11]


@pytest.mark.parametrize(("statement", "conflicts"), [("merge", False), ("update", True)])
def test_the_table_decides_the_isolation_of_a_statement_that_asks_for_none(
    catalog: PlainCatalog, connector: Connector, statement: str, conflicts: bool
) -> None:
    with library_table(catalog).transaction() as transaction:
        transaction.set_properties({"write.merge.isolation-level": "SNAPSHOT"})
    write = DirectWrite(connector, isolation=None, statement=statement)
    write.delete(file_with(write, 11), 1)
    append_beside(catalog)

    if conflicts:
        with pytest.raises(JobError) as caught:
            write.publish()
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    else:
        write.publish()
    assert (11 in ids_of(catalog)) == conflicts


def test_a_file_that_another_one_has_changed_is_in_the_way_under_either_isolation(
    catalog: PlainCatalog, connector: Connector
) -> None:
    write = DirectWrite(connector, isolation="snapshot")
    write.delete(file_with(write, 2), 2)
    delete_beside(catalog)

    with pytest.raises(JobError) as caught:
        write.publish()

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT


def test_many_writers_lose_nothing(catalog: PlainCatalog) -> None:
    writes = [DirectWrite(catalog.open(), isolation="snapshot") for _ in range(6)]
    for number, write in enumerate(writes):
        write.insert({"id": 1000 + number, "s": "new"})

    for write in writes:
        write.publish()

    assert ids_of(catalog)[-6:] == list(range(1000, 1006))


def test_a_retry_knows_that_history_is_lost(catalog: PlainCatalog, connector: Connector) -> None:
    write = DirectWrite(connector)
    base = library_table(catalog).current_snapshot().snapshot_id
    append_beside(catalog)
    append_beside(catalog)
    assert found(connector, write.operation_id) is None
    library_table(catalog).maintenance.expire_snapshots().by_id(base).commit()

    with pytest.raises(JobError) as caught:
        found(connector, write.operation_id)

    assert caught.value.code is ErrorCode.COMMIT_HISTORY_EXPIRED
    assert found(connector, "another") is None


def test_what_a_branch_lost_was_not_committed(catalog: PlainCatalog, connector: Connector) -> None:
    first = library_table(catalog).current_snapshot().snapshot_id
    append_beside(catalog)
    write = DirectWrite(connector)
    back = SetCurrentSnapshotSpec(first, force=True)
    assert connector.branches is not None

    connector.branches.set_current_snapshot(NAME, back, dag_id="", dry_run=False)
    append_beside(catalog)

    assert found(connector, write.operation_id) is None


def test_a_retry_knows_that_the_first_snapshot_of_a_table_is_lost(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.create(SCHEMA, {"format-version": "2"}, None)
    connector = catalog.open()
    write = DirectWrite(connector).insert({"id": 1, "s": "x"})
    note = (catalog.folder / base_path(write.operation_id)).read_bytes()
    made = write.publish()
    append_beside(catalog)
    (catalog.folder / base_path(write.operation_id)).write_bytes(note)
    assert found(connector, write.operation_id) == made
    # Whose snapshots then begin with one without a parent.
    library_table(catalog).maintenance.expire_snapshots().by_id(made.snapshot_id).commit()

    with pytest.raises(JobError) as caught:
        found(connector, write.operation_id)

    assert caught.value.code is ErrorCode.COMMIT_HISTORY_EXPIRED


def test_tables_of_version_1(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.create(SCHEMA, {"format-version": "1", "write.merge.mode": "merge-on-read"}, rows(1, 2))
    connector = catalog.open()

    DirectWrite(connector).delete(0, 1).insert({"id": 7, "s": "new"}).publish()
    DirectWrite(connector).insert({"id": 8, "s": "new"}).publish()

    assert ids_of(catalog) == [1, 7, 8]
    table = library_table(catalog)
    assert table.format_version == 1
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    write = DirectWrite(connector)
    write.delete(file_with(write, 8), 0).publish()
    assert ids_of(catalog) == [1, 7]
