"""Java compacts a table while a statement is at work on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.judge.judge import read_with_java
from tests.judge.writer import JavaTable
from tests.support.paimon_tables import change_rows, store

NAME = TableName("d", "t")
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32())])


@pytest.fixture(params=[False, True], ids=["copy-on-write", "deletion vectors"])
def java(tmp_path: Path, request: pytest.FixtureRequest) -> JavaTable:
    """Partition 0 is one file with ids 0 and 1, partition 1 three of two ids each."""
    options = {"compaction.min.file-num": "2"}
    if request.param:
        options["deletion-vectors.enabled"] = "true"
    table = JavaTable.create(tmp_path, str(NAME), SCHEMA, ["p"], options)
    for ids, p in (([0, 1], 0), ([10, 11], 1), ([12, 13], 1), ([14, 15], 1)):
        table.append(pa.table({"id": ids, "p": [p] * 2}, SCHEMA))
    if request.param:
        table.delete("id", [13])
    return table


def deletion(
    connector: Connector, wanted: int, p: int, meanwhile: Callable[[], None] = lambda: None
) -> CommittedSnapshot:
    """Delete a row of a partition; something happens before the commit."""
    table = connector.metadata.load_table(NAME)
    files = [f for f in connector.metadata.plan_files(table) if f.partition["p"] == p]
    operation = Operation(f"operation-{wanted}", "digest", {})
    write = MergeWrite(
        operation,
        tuple(files),
        ((),),
        (),
        2**27,
        read_set=lambda found: [file for file in found if file.partition["p"] == p],
    )
    handle = connector.writes.begin_merge(table, write)
    fragments = store(handle, _without(table, files, wanted))
    meanwhile()
    return connector.writes.finish_merge(table, handle, fragments, {})


def _without(table: TableHandle, files: Sequence[PlannedFile], wanted: int) -> pa.Table:
    """The change that deletes the row with the id."""
    for file in files:
        found = pq.ParquetFile(file.path).read(["id"])["id"].to_pylist()
        if wanted in found:
            row_id = {"file": file.ordinal, "position": found.index(wanted)}
            return change_rows(table, rows.DELETE, [row_id])
    raise AssertionError(f"no file holds {wanted}")


def ids(warehouse: Path) -> list[int]:
    return sorted(row["id"] for row in read_with_java(warehouse, str(NAME)))


def test_compaction_of_another_partition_is_no_conflict(java: JavaTable) -> None:
    connector = open_connector(CatalogSpec("paimon", str(java.warehouse)), {})
    before = connector.metadata.load_table(NAME).snapshot_id or 0
    expected = [each for each in ids(java.warehouse) if each != 0]

    found = deletion(connector, 0, p=0, meanwhile=java.compact)

    assert found.snapshot_id == before + 2
    table = connector.metadata.load_table(NAME)
    partitions = [file.partition["p"] for file in connector.metadata.plan_files(table)]
    assert partitions.count(0) == 1
    assert partitions.count(1) < 3
    assert ids(java.warehouse) == expected


def test_compaction_of_the_files_that_change_is_a_conflict(java: JavaTable) -> None:
    connector = open_connector(CatalogSpec("paimon", str(java.warehouse)), {})
    expected = ids(java.warehouse)

    with pytest.raises(CommitError) as raised:
        deletion(connector, 10, p=1, meanwhile=java.compact)

    assert raised.value.code is ErrorCode.COMMIT_CONFLICT
    assert "COMPACT" in raised.value.message
    assert ids(java.warehouse) == expected

    deletion(connector, 10, p=1)

    assert ids(java.warehouse) == [each for each in expected if each != 10]
