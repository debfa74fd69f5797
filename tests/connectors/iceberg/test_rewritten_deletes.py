"""Position deletes that are put together without rewriting data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.compaction import delete_plan
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_history import NAME, SCHEMA, ids, made, stored, table
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.test_compaction import FULL, Compacting, compact, live, plan
from tests.support.iceberg_tables import IcebergTable

DELETES = CompactSpec(mode="deletes", min_files=2)


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Two files of ten rows; two files of deletes are about each, two more are about the first."""
    catalog = made(tmp_path, 0, **{"write.merge.mode": "merge-on-read"})
    for number in (0, 10):
        rows = pa.table({"id": [*range(number, number + 10)]}, schema=SCHEMA)
        table(catalog).append(rows)
    first, second = files(catalog)
    mark(catalog, {first: [0], second: [1]})
    mark(catalog, {first: [2], second: [1, 3]})
    mark(catalog, {first: [4, 5]})
    mark(catalog, {first: [5]})
    return catalog


@pytest.fixture
def connector(catalog: PlainCatalog) -> Connector:
    return catalog.open()


def mark(catalog: PlainCatalog, positions: dict[str, list[int]]) -> None:
    IcebergTable(catalog.library(), ("db", "t")).mark_positions(positions)


def files(catalog: PlainCatalog) -> list[str]:
    return sorted(each.file.file_path for each in live(catalog))


def deletes(catalog: PlainCatalog) -> list[int]:
    """How many files of deletes each data file has."""
    return sorted(len(each.delete_files) for each in live(catalog))


def test_each_data_file_has_one_file_of_deletes(
    catalog: PlainCatalog, connector: Connector
) -> None:
    before, data = ids(catalog), files(catalog)
    assert len(before) == 14

    (group,) = compact(connector, DELETES)

    assert ids(catalog) == before
    assert files(catalog) == data
    assert deletes(catalog) == [1, 1]
    (done,) = group.done.partitions.values()
    assert (done.files_before, done.files_after, done.rows) == (4, 2, 6)
    summary = table(catalog).current_snapshot().summary
    assert summary.operation.value == "replace"
    assert summary["added-position-delete-files"] == "2"
    assert summary["removed-position-delete-files"] == "4"
    assert summary["added-position-deletes"] == "6"
    assert plan(connector, DELETES)[1].groups == ()


def test_only_what_is_worth_it(connector: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(connector, CompactSpec(mode="deletes"))[1].groups == ()
    assert plan(connector, CompactSpec(mode="deletes", min_files=4))[1].groups
    monkeypatch.setattr(delete_plan, "_MOST_ROWS", 5)
    assert plan(connector, DELETES)[1].groups == ()


def test_new_files_have_the_numbers_of_the_old_ones(
    catalog: PlainCatalog, connector: Connector
) -> None:
    begun = table(catalog).current_snapshot().sequence_number
    work = Compacting(connector, DELETES)
    table(catalog).append(pa.table({"id": [20]}, schema=SCHEMA))
    before = ids(catalog)

    work.publish()

    assert ids(catalog) == before
    now = table(catalog)
    entries = [
        entry
        for manifest in now.current_snapshot().manifests(now.io)
        for entry in manifest.fetch_manifest_entry(now.io, discard_deleted=True)
        if entry.data_file.content.value == 1
    ]
    assert [each.sequence_number for each in entries] == [begun, begun - 2]


def test_more_deletes_meanwhile_are_no_conflict(
    catalog: PlainCatalog, connector: Connector
) -> None:
    work = Compacting(connector, DELETES)
    mark(catalog, {files(catalog)[1]: [9]})
    left = ids(catalog)

    (group,) = work.publish()

    assert group.lost == frozenset()
    assert ids(catalog) == left
    assert deletes(catalog) == [1, 2]


def test_who_removes_a_file_meanwhile_is_in_the_way(
    catalog: PlainCatalog, connector: Connector
) -> None:
    work = Compacting(connector, DELETES)
    before = stored(catalog)
    compact(catalog.open(), FULL)
    left = ids(catalog)

    (group,) = work.publish()

    assert (group.snapshot, group.lost) == (None, {0})
    assert ids(catalog) == left
    assert len(before - stored(catalog)) == 2


def test_a_statement_that_marks_rows_meanwhile(catalog: PlainCatalog, connector: Connector) -> None:
    """It replaces the deletes that are about its file alone."""
    work = Compacting(connector, DELETES)
    DirectWrite(catalog.open(), rewrite_share=1.0, name=NAME).delete(0, 9).publish()
    left = ids(catalog)

    (group,) = work.publish()

    assert group.lost == {0}
    assert ids(catalog) == left


def test_tables_of_version_1_have_none(tmp_path: Path) -> None:
    catalog = made(tmp_path, 3, **{"format-version": "1"})
    assert plan(catalog.open(), DELETES)[1].groups == ()
