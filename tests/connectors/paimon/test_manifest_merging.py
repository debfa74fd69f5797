"""The manifest list of a table stays short, whatever the number of its commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_tables import (
    NAME,
    append,
    change_rows,
    create,
    inserts,
    merge,
    read,
    store,
)

_COMMITS = 40


def removals_by_manifest(table: TableHandle) -> list[int]:
    """For each manifest of the latest snapshot, how many removals it holds."""
    listed = manifest_files.listed_manifests(table.native.table, table.native.snapshot)
    return [each.num_deleted_files for each in listed]


def commits(connector: Connector, count: int = _COMMITS) -> list[TableHandle]:
    """One row comes with each commit and, from the second on, the first file goes."""
    tables = []
    for number in range(count):
        table = connector.metadata.load_table(NAME)
        gone = [change_rows(table, rows.DELETE, [{"file": 0, "position": 0}])] if number else []
        added = inserts(table, [{"id": number}])
        merge(connector, table, *gone, added, operation_id=f"op-{number}")
        connector.writes.release_guard(table, f"op-{number}")
        tables.append(connector.metadata.load_table(NAME))
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("least", [30, 5])
def test_many_small_manifests_are_merged(connector: Connector, least: int) -> None:
    create(connector, {"id": "int"}, options={"manifest.merge-min-count": str(least)})

    tables = commits(connector)

    lengths = [len(removals_by_manifest(table)) for table in tables]
    # At most all but one of the smallest number that is merged, and the newest.
    assert max(lengths) == least
    assert min(lengths[least:]) <= 2
    # Files that came and went are not remembered for ever.
    live = manifest_files.listed_manifests(tables[-1].native.table, tables[-1].native.snapshot)
    assert sum(each.num_added_files for each in live) <= least + 1
    assert len(read(connector)) == 1


@pytest.mark.slow
def test_manifests_that_are_large_are_left_alone(connector: Connector) -> None:
    options = {"manifest.target-file-size": "1 kb", "manifest.merge-min-count": "1000"}
    create(connector, {"id": "int"}, options=options)

    tables = commits(connector)

    assert len(removals_by_manifest(tables[-1])) == _COMMITS
    assert len(read(connector)) == 1


def test_a_full_merge_leaves_no_removals(connector: Connector) -> None:
    options = {"manifest.full-compaction-threshold-size": "1 b"}
    create(connector, {"id": "int"}, options=options)

    tables = commits(connector, 6)

    # What the newest commit removed is still to come.
    assert [removals_by_manifest(table)[:-1] for table in tables[2:]] == [[0]] * 4
    assert len(read(connector)) == 1


def test_files_of_every_partition_survive_merges(connector: Connector) -> None:
    create(connector, {"id": "int", "p": "string"}, ["p"], {"manifest.merge-min-count": "3"})
    values = [None, "", "a", "b", "é"]

    for number in range(12):
        append(connector, [{"id": number, "p": values[number % 5]}], f"op-{number}")

    assert sorted(row["id"] for row in read(connector)) == list(range(12))
    assert [row["p"] for row in sorted(read(connector), key=lambda row: row["id"])] == [
        values[number % 5] for number in range(12)
    ]


def test_a_lost_race_leaves_no_manifest_behind(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(connector, {"id": "int"})
    create_file = HardLinkFiles.create
    others = iter([1, 2, 3])

    def late(self: HardLinkFiles, path: str, text: str) -> bool:
        monkeypatch.setattr(HardLinkFiles, "create", create_file)
        append(connector, [{"id": next(others)}], "other")
        return create_file(self, path, text)

    operation = Operation("op", "digest", {})
    write = MergeWrite(operation, (), ((),), (), 2**27, read_set=lambda _: ())
    handle = connector.writes.begin_merge(table, write)
    fragments = store(handle, inserts(table, [{"id": 9}]))
    monkeypatch.setattr(HardLinkFiles, "create", late)

    assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 2

    lists = list(Path(table.native.path).glob("manifest/manifest-list-*"))
    assert len(lists) == 4
    assert sorted(row["id"] for row in read(connector)) == [1, 9]
